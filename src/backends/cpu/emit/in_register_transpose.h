// In-register transposes of data that are contiguous along rows but needed across rows. A block has as many positions as
// there are rows in a group.
#pragma once

#include <vector>

#include "backends/cpu/emit/memory.h"

namespace lamina::cpu {

class InRegisterTranspose : private Part {
 public:
  InRegisterTranspose(Emission& emission, Memory& memory) : Part(emission), memory_(memory) {}

  // Whether elements of a row are contiguous, and those of neighbouring rows are not. A column sum uses a block as well.
  bool transposes(int arg) const;
  bool transposes(const kernel::Node& n) const;

  // The values of transposed args at these positions, per position and node; null for all other nodes.
  std::vector<ElementValues> load(const Row& group, const NodeList& nodes, int phase, const std::vector<Lanes>& positions);
  // Transposes `positions`, one vector each, starting at `first` and at most as many as rows, into rows.
  struct Block {
    ValueList rows;
    Lanes along;  // their positions along each row
  };
  Block to_rows(ValueList positions, llvm::Value* first);
  void store(const Row& group, const Store& to, const Block& block);

  llvm::Value* has_row(const Frame& group, int r) { return b_.CreateICmpSLT(i64(r), group.rows); }
  // The address of row `r` of a group. Substitutes a valid row for rows past the end.
  llvm::Value* row_address(const Frame& group, llvm::Value* first_row, int arg, int r);

 private:
  llvm::Value* positions_mask(size_t count);

  Memory& memory_;
};

}  // namespace lamina::cpu
