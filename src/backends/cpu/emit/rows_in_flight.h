// Rows in flight: where a row and its live values lie, and where what is known of it waits between phases.
#pragma once

#include <vector>

#include "backends/cpu/emit/phases.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

inline constexpr uint64_t kLiveAlignment = 64;  // a chunk's vectors lie at multiples of their own size, at most this

class Rows : private Part {
 public:
  // `tile`: rows of a tile, whose live values lie side by side.
  Rows(Emission& emission, const Phases& phases, int tile);

  // Nothing is known of it yet. `place`: among the rows of its tile.
  Row begin(llvm::Value* number, llvm::Value* place, const Frame& frame);

 private:
  llvm::Value* index_base(const kernel::Node& index, const ValueList& position);

  const Phases& phases_;
  std::vector<llvm::AllocaInst*> live_buffers_;  // per node: the values along each row of the tile
};

// What is known once per row waits in memory while other rows, or other threads, go through a phase: a value for each row of a
// tile on the stack or, under the split schedule, a word of the row's own state.
class RowStore : private Part {
 public:
  // `states`: of rows that are split.
  explicit RowStore(Emission& emission, llvm::Value* states = nullptr)
      : Part(emission), slots_(row_value_count(emission.kernel)), states_(states) {}
  RowStore from_row(llvm::Value* place) const;  // the same, of a tile that begins at a later row

  void save(const Row& row);
  void restore(Row& row);

  // In the order of for_each_row_value.
  llvm::Value* address(size_t slot, llvm::Type* type, llvm::Value* place);
  llvm::Value* address_of_all(size_t slot, llvm::Type* type);  // of the tile's rows side by side, which have it from now on
  llvm::Type* type_of(size_t slot) const { return slots_[slot].type; }
  llvm::Value* state_word(llvm::Value* place, llvm::Value* word) const;  // of rows that are split

 private:
  struct Slot {
    llvm::Type* type = nullptr;           // null: not known in any phase so far
    llvm::AllocaInst* of_rows = nullptr;  // a value for each row of the tile; not of rows that are split
    llvm::Value* restored = nullptr;      // as last read
  };
  std::vector<Slot> slots_;
  llvm::Value* states_;  // null: on the stack
};

}  // namespace lamina::cpu
