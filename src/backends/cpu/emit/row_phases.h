// One phase of rows in flight: what is known once per row, then the walk for the phase's roots, then what these came to.
#pragma once

#include <functional>
#include <vector>

#include "backends/cpu/emit/walk.h"

namespace lamina::cpu {

class RowPhases : private Part {
 public:
  explicit RowPhases(Parts& parts) : Part(parts.e), p_(parts) {}

  // `strip`: where the strip of columns at hand begins; null: whole rows.
  void emit(const std::vector<Row*>& rows, int phase, llvm::Value* strip = nullptr);
  void walk(const std::vector<Row*>& rows, int phase, llvm::Value* strip = nullptr);
  // A phase that may be skipped, where a row needs it; `walk` changes the row that it is given.
  void second_walk(Row& row, int phase, const std::function<void(Row&)>& walk);
  void second_walk(Row& row, int phase);

  // One block of a row: what each reduction comes to there.
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
