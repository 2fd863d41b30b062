// Reductions: accumulators, and how a block, a row and a team complete them.
//
// A lane's elements of a block are added in order. The lanes' sums are folded in a fixed tree, for every assignment of lanes to
// threads (schedule/sum_order.h). Blocks are added as pairs of floats, so no f64 is needed. Mean and variance use two walks.
// The first sums x - s, where s is the row's first element. The second computes d = x - high with that mean, and sums d^2 and
// d. The average of d is the error of the mean, which corrects the mean and the variance. E[x^2] - E[x]^2 is never computed. A
// row of several blocks is walked twice per block, the second time over registers, and the blocks' moments are joined
// (lm_moments_join), so that its elements are loaded once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "backends/gpu/emit/values.h"

namespace lamina::gpu {

class Reductions : private Part {
 public:
  Reductions(Emission& emission, const Values& values) : Part(emission), values_(values) {}

  void emit_team_memory();  // of the work-group, for the folds over teams
  // In order: once per phase, once per block of the row, per element, at the block's end, then to join it with the row's
  // earlier blocks, and at the row's end. Other roots than reductions do nothing.
  void begin_root(kernel::NodeIndex root, int phase);
  void begin_block(kernel::NodeIndex root, int phase);
  void accumulate(kernel::NodeIndex root, int phase, const std::string& value);
  void fold_block(kernel::NodeIndex root, int phase);
  void join_block(kernel::NodeIndex root, int phase);
  void finish_root(kernel::NodeIndex root, int phase);

  // Calls visit(type, number, result) for each result of a block in a phase: its number among the kernel's results, and the
  // variable.
  using VisitResult = std::function<void(kernel::Type type, int64_t number, const std::string& result)>;
  void for_results(int phase, const VisitResult& visit) const;
  // Joins the results of all blocks of the row in their order, read at `place` of the block that starts at `base`.
  using PlaceOfResult = std::function<std::string(kernel::Type type, int64_t number)>;
  void join_results(int phase, const PlaceOfResult& place);

  // The parts of begin_root: rows of split kernels shift in one kernel, and total in the next ones.
  void emit_shift(kernel::NodeIndex root);
  void begin_totals(kernel::NodeIndex root, int phase);
  // For rows of several blocks, both walks of the moments run over each block, and blocks are joined.
  bool by_block(kernel::NodeIndex root) const { return node(root).kind == kernel::NodeKind::moments && !e_.one_block; }

 private:
  void finish_moments(kernel::NodeIndex root, const std::string& variance);
  void declare_accumulator(const std::string& name, kernel::Type type, const std::string& first);
  std::string accumulator(const std::string& name) const;
  void fold_team(const std::string& slot, kernel::Type type, kernel::Reduction reduction);
  void fold_deviations(kernel::NodeIndex root, int phase);
  int accumulator_count(kernel::NodeIndex root, int phase) const;
  bool is_sum(kernel::NodeIndex root) const;
  std::string count(kernel::Type type) const;

  const Values& values_;
};

// The number of results per block of the row.
int64_t count_block_results(const kernel::Kernel& kernel);

}  // namespace lamina::gpu
