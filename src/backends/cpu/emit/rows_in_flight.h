// Rows in flight: the addresses of a row and its live values, and the memory of its row values between phases.
#pragma once

#include <vector>

#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class Rows : private Part {
 public:
  explicit Rows(Emission& emission) : Part(emission) {}

  // Starts a row without known values. `place`: index among the rows of its tile.
  Row begin(llvm::Value* number, llvm::Value* place, const Frame& frame);

 private:
  llvm::Value* index_base(const kernel::Node& index, const ValueList& position);
};

// Row values are in memory while other rows, or other threads, run a phase: one value per row of a tile on the stack or,
// under the split schedule, one word in the row's state.
class RowStore : private Part {
 public:
  // `states`: for rows that are split.
  explicit RowStore(Emission& emission, llvm::Value* states = nullptr)
      : Part(emission), slots_(row_value_count(emission.kernel)), states_(states) {}
  RowStore from_row(llvm::Value* place) const;  // the same for a tile that starts at a later row

  void save(const Row& row);
  void restore(Row& row);

  // Slots are numbered in the order of for_each_row_value.
  llvm::Value* address(size_t slot, llvm::Type* type, llvm::Value* place);
  // for the values of all rows of the tile, adjacent in memory, which are then stored there
  llvm::Value* address_of_all(size_t slot, llvm::Type* type);
  llvm::Type* type_of(size_t slot) const { return slots_[slot].type; }
  llvm::Value* state_word(llvm::Value* place, llvm::Value* word) const;  // for rows that are split

 private:
  struct Slot {
    llvm::Type* type = nullptr;           // null: not known in any phase so far
    llvm::AllocaInst* of_rows = nullptr;  // one value per row of the tile; unused for rows that are split
    llvm::Value* restored = nullptr;      // the value read last
  };
  std::vector<Slot> slots_;
  llvm::Value* states_;  // null: on the stack
};

}  // namespace lamina::cpu
