// A value per node: element nodes as vectors of lanes, row nodes as a value per row.
#pragma once

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

 private:
  llvm::Value* map_value(const kernel::Node& node, ValueList operands);
  llvm::Value* cast_value(llvm::Value* value, kernel::Type from, kernel::Type to);
  llvm::Value* centered(const Row& row, kernel::NodeIndex moments, llvm::Value* value, llvm::Value* scale = nullptr);

  Memory& memory_;
};

}  // namespace lamina::cpu
