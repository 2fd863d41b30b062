// A value per node: element nodes as vectors of lanes, row nodes as a value per row.
#pragma once

#include <span>

#include "backends/cpu/emit/memory.h"
#include "backends/cpu/emit/row.h"

namespace lamina::cpu {

class Values : private Part {
 public:
  Values(Emission& emission, Memory& memory) : Part(emission), memory_(memory) {}

  // What phase `phase` may use of the values per row, as far as it is computed where this row is; stores of them too.
  void compute_row_values(Row& row, int phase);
  // `known`: of the nodes before it.
  llvm::Value* element(const Row& row, kernel::NodeIndex node, const Lanes& lanes, const ElementValues& known);

  // Random words of elements side by side: four neighbours share a call of the generator, and its rounds are a long chain, so
  // all vectors of a chunk, which follow each other, are drawn at once.
  bool draws_for_neighbours(kernel::NodeIndex node) const;
  ValueList draw_for_neighbours(const Row& row, kernel::NodeIndex node, std::span<const Lanes> chunk);

 private:
  llvm::Value* map_value(const kernel::Node& node, ValueList operands);
  llvm::Value* cast_value(llvm::Value* value, kernel::Type from, kernel::Type to);
  bool counts_elements(kernel::NodeIndex node) const;
  llvm::Value* count_at(const Row& row, kernel::NodeIndex node, llvm::Value* offset);
  llvm::Value* centered(const Row& row, kernel::NodeIndex moments, llvm::Value* value, llvm::Value* scale = nullptr);

  Memory& memory_;
};

}  // namespace lamina::cpu
