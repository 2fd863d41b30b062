// Sums over the rows of a column block, a value per inner position. They lie in memory (split_call.h) between rows.
#pragma once

#include <vector>

#include "backends/cpu/emit/in_register_transpose.h"

namespace lamina::cpu {

class ColumnSums : private Part {
 public:
  ColumnSums(Emission& emission, InRegisterTranspose& transpose);

  // The values of some rows at `lanes`, row after row.
  void add(const std::vector<Row*>& rows, kernel::NodeIndex root, const ValueList& values, const Lanes& lanes);
  // The same of a group.
  void add(const Row& group, kernel::NodeIndex root, const InRegisterTranspose::Block& block);

 private:
  struct Place {
    llvm::Value *address, *so_far;
  };
  Place load(const Row& row, kernel::NodeIndex root, llvm::Type* type, const Lanes& lanes);
  void store(const Place& sums, llvm::Value* sum, const Lanes& lanes);

  InRegisterTranspose& transpose_;
  std::vector<int> slot_;  // per node: position among the column sums
};

}  // namespace lamina::cpu
