// Sums over the rows of a column block, one per inner position. Between rows they are in memory (split_call.h).
#pragma once

#include <vector>

#include "backends/cpu/emit/in_register_transpose.h"

namespace lamina::cpu {

class ColumnSums : private Part {
 public:
  ColumnSums(Emission& emission, InRegisterTranspose& transpose);

  // Adds the values of some rows at `lanes`, row after row.
  void add(const std::vector<Row*>& rows, kernel::NodeIndex root, const ValueList& values, const Lanes& lanes);
  // The same for a group.
  void add(const Row& group, kernel::NodeIndex root, const InRegisterTranspose::Block& block);

 private:
  struct Place {
    llvm::Value *address, *so_far;
  };
  Place load(const Row& row, kernel::NodeIndex root, llvm::Type* type, const Lanes& lanes);
  llvm::Value* zero_if(llvm::Value* condition, llvm::Value* sum);  // i1
  void store(const Place& sums, llvm::Value* sum, const Lanes& lanes);

  InRegisterTranspose& transpose_;
  std::vector<int> slot_;  // per node: position among the column sums
};

}  // namespace lamina::cpu
