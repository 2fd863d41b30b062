// Roots in flight: the results of a walk over a row, and how its reductions are completed.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "backends/cpu/emit/accumulators.h"
#include "backends/cpu/emit/in_register_transpose.h"
#include "backends/cpu/emit/values.h"

namespace lamina::cpu {

// For moments, a walk computes {sum, squares} of the differences from a shift or from a mean. If the row has several blocks,
// the result of each block is {mean, deviations}, and so are the totals.
struct Root {
  kernel::NodeIndex node;
  std::vector<std::unique_ptr<Accumulator>> accumulators = {};  // empty for a store or a column sum
  std::vector<llvm::AllocaInst*> totals = {};                   // over the blocks so far; f64 for sums and products
  llvm::Value* shift = nullptr;
  bool by_block = false;

  bool reduces() const { return !accumulators.empty(); }
};
bool reduce(std::span<const Root> roots);  // whether any of them reduces

class Reductions : private Part {
 public:
  Reductions(Emission& emission, Memory& memory, InRegisterTranspose& transpose, Values& values)
      : Part(emission), memory_(memory), transpose_(transpose), values_(values) {}

  std::vector<Root> begin(const Row& row, const NodeList& roots, int phase);
  void add(const Row& row, Root& root, int phase, const ValueList& operands, std::span<const Lanes> lanes);  // one vector each
  ValueList fold(Root& root);  // each accumulator's result since the last fold
  // Adds a block of `count` elements (i64) to the totals. `before`: elements so far. Only moments by block use the counts.
  void add_block(const Root& root, const ValueList& values, llvm::Value* before, llvm::Value* count);
  void fold_to_totals(std::span<Root> roots);
  // Stores the segment sum of the segment at which the row is, and starts the next segment.
  void end_segment(const Row& row, Root& root);
  void finish(Row& row, std::span<const Root> roots, int phase);  // afterwards the row's values are known
  void add_totals(Root& root, int lanes);                         // creates totals, as row values with `lanes` lanes

  // Mean and squared deviations of some elements in f64. is_far: i1, whether a second walk around split_mean(mean) is needed.
  struct OneWalk {
    llvm::Value *mean, *deviations, *is_far;
  };
  OneWalk one_walk(const Root& root, const ValueList& sums, llvm::Value* count);
  ValueList second_walk(const Row& row, const Root& root, const ValueList& sums, llvm::Value* count);
  void split_mean(Row& row, kernel::NodeIndex moments, llvm::Value* mean);

  // The shift that is subtracted in differences: the average of the row's first elements, added in parts.
  int shift_elements() const;
  llvm::Value* add_shift_elements(const Row& row, kernel::NodeIndex moments);  // reduced to one vector
  llvm::Value* shift_from(kernel::NodeIndex moments, llvm::Value* average);

 private:
  Root begin_root(const Row& row, kernel::NodeIndex index, int phase);
  llvm::Value* shift_of(const Row& row, kernel::NodeIndex moments);
  ValueList elements(const Row& row, kernel::NodeIndex node, const std::vector<Lanes>& positions);
  void join_moments(const Root& root, const ValueList& values, llvm::Value* before, llvm::Value* count);
  void finish_reduction(Row& row, const Root& root);
  void finish_first_walk(Row& row, const Root& root);
  void finish_second_walk(Row& row, const Root& root);
  void set_moments(Row& row, kernel::NodeIndex moments, llvm::Value* mean, llvm::Value* deviations);
  llvm::Value* mean_with_residual(const Row& row, kernel::NodeIndex moments, llvm::Value* residual);
  llvm::Value* total(const Root& root, size_t i);
  llvm::Value* to_double(llvm::Value* value);
  llvm::Value* row_size(const Row& row);  // f64, as a value per row

  Memory& memory_;
  InRegisterTranspose& transpose_;
  Values& values_;
};

}  // namespace lamina::cpu
