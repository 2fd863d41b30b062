// One phase of some rows: the row values, then the walk for the phase's roots, then the roots' results.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

class RowPhases : private Part {
 public:
  explicit RowPhases(Parts& parts) : Part(parts.e), p_(parts) {}

  // `strip`: the start of the current strip of columns; null: whole rows.
  void emit(const std::vector<Row*>& rows, int phase, llvm::Value* strip = nullptr);
  void walk(const std::vector<Row*>& rows, int phase, llvm::Value* strip = nullptr);
  // A phase that may be skipped runs only for rows that need it. `walk` changes the row that it receives.
  void second_walk(Row& row, int phase, const std::function<void(Row&)>& walk);
  void second_walk(Row& row, int phase);

  // The result of each reduction for one block of a row.
  struct BlockResult {
    Root* root;
    ValueList values;
  };
  std::vector<BlockResult> block(Row& row, PhaseWalk& walk, llvm::Value* start, int64_t count);

 private:
  llvm::Value* any_row(llvm::Value* flag) { return flag->getType()->isVectorTy() ? b_.CreateOrReduce(flag) : flag; }
  void walk_by_blocks(Row& row, PhaseWalk& walk);
  ValueList block_moments(Row& row, PhaseWalk& walk, Root& root, llvm::Value* start, int64_t count);

  Parts& p_;
};

}  // namespace lamina::cpu
