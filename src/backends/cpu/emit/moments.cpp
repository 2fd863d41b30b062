// Mean and variance. One walk over a row is enough if the row's first elements are near its mean. With s their average and d
// = x - s, the sums of d and d^2 give mean s + sum d / n and variance (sum d^2 - (sum d)^2 / n) / n, which loses at most one
// bit while (mean - s)^2 is at most the variance. Otherwise a second walk computes d = x - high with that mean rounded to
// f32; the average of d is the error of the mean and corrects both. The choice depends only on the row's elements. Centring
// then computes (x - high) - low with the mean split into two floats. E[x^2] - E[x]^2 is never computed. A row of several
// blocks is walked block by block, including the second walk, and means and squared deviations are joined in f64 (Chan, Golub
// and LeVeque, Updating formulae and a pairwise algorithm for computing sample variances, 1979), so that a long row is read
// from memory once.
#include <algorithm>
#include <bit>

#include "backends/cpu/emit/reductions.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

// The average of the row's first elements; their number is a power of two up to 16. It must be close to the mean but not exact;
// for equal elements it is exact. For 16-bit data it is rounded to their precision, so that differences and their sums are
// exact or nearly so. An infinity or NaN is replaced by 0, because it would turn every difference into NaN.
llvm::Value* Reductions::shift_of(const Row& row, NodeIndex moments) {
  if (llvm::Value* const known = row.shifts[static_cast<size_t>(moments)]; known != nullptr) return known;
  llvm::Value* const parts = add_shift_elements(row, moments);
  if (e_.across_rows()) return shift_from(moments, parts);
  const auto join = [&](llvm::Value* a, llvm::Value* b) { return combine(e_, Combine::sum, a, b); };
  return shift_from(moments, fold_lanes(e_, join, parts, std::min(shift_elements(), e_.width)));
}

int Reductions::shift_elements() const {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(kShiftElements, kernel_.extents.back()))));
}

llvm::Value* Reductions::add_shift_elements(const Row& row, NodeIndex moments) {
  const int count = shift_elements();
  if (kernel_.row_size() == 0) return llvm::Constant::getNullValue(e_.type(node(moments).type, e_.width));
  const std::vector<Lanes> positions =
      e_.across_rows() ? positions_at(e_, row.frame, i64(0), count) : chunk_at(e_, i64(0), count);
  ValueList some = elements(row, node(moments).operands[0], positions);
  for (llvm::Value*& value : some) value = b_.CreateFMul(value, llvm::ConstantFP::get(value->getType(), 1.0 / count));
  while (some.size() > 1) {
    const size_t half = some.size() / 2;
    for (size_t i = 0; i < half; ++i) some[i] = b_.CreateFAdd(some[i], some[i + half]);
    some.resize(half);
  }
  return some[0];
}

llvm::Value* Reductions::shift_from(NodeIndex moments, llvm::Value* average) {
  const DataType coarse = kernel::data_precision(kernel_, node(moments).operands[0]);
  if (coarse != DataType::undef) average = memory_.round_trip(coarse, node(moments).type, average);
  llvm::Value* const zero = llvm::Constant::getNullValue(average->getType());
  return b_.CreateSelect(b_.CreateFCmpOEQ(b_.CreateFSub(average, average), zero), average, zero);
}

// The values of an element node at some positions of the row.
ValueList Reductions::elements(const Row& row, NodeIndex root, const std::vector<Lanes>& positions) {
  if (!node(root).per_element) return ValueList(positions.size(), e_.widen(row.values[static_cast<size_t>(root)], e_.width));
  const std::vector<bool> needed = kernel::element_nodes_of(kernel_, root);
  NodeList nodes;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) nodes.push_back(static_cast<NodeIndex>(i));
  }
  std::vector<ElementValues> all = transpose_.load(row, nodes, 0, positions);
  ValueList values;
  for (size_t p = 0; p < positions.size(); ++p) {
    const Lanes& lanes = positions[p];
    ElementValues& known = all[p];
    for (size_t i = 0; i <= static_cast<size_t>(root); ++i) {
      if (needed[i] && known[i] == nullptr) known[i] = values_.element(row, static_cast<NodeIndex>(i), lanes, known);
    }
    values.push_back(known[static_cast<size_t>(root)]);
  }
  return values;
}

// The results of one walk over `count` elements (f64), where `sums` are the sums of x - s and of its square: the mean, the
// squared deviations, and whether s was too far from the mean.
Reductions::OneWalk Reductions::one_walk(const Root& root, const ValueList& sums, llvm::Value* count) {
  llvm::Value* const distance = b_.CreateFDiv(to_double(sums[0]), count);
  llvm::Value* const shifted = b_.CreateFMul(to_double(sums[0]), distance);
  llvm::Value* const deviations = b_.CreateFSub(to_double(sums[1]), shifted);
  return {b_.CreateFAdd(to_double(root.shift), distance), deviations, b_.CreateFCmpUGT(shifted, deviations)};
}

// The results after the second walk: the corrected mean, and the squared deviations from it.
ValueList Reductions::second_walk(const Row& row, const Root& root, const ValueList& sums, llvm::Value* count) {
  llvm::Value* const residual = b_.CreateFDiv(to_double(sums[0]), count);
  llvm::Value* const deviations = b_.CreateFSub(to_double(sums[1]), b_.CreateFMul(to_double(sums[0]), residual));
  llvm::Value* const zero = llvm::ConstantFP::get(deviations->getType(), 0);
  llvm::Value* const negative = b_.CreateFCmpOLT(deviations, zero);
  return {mean_with_residual(row, root.node, residual), b_.CreateSelect(negative, zero, deviations)};
}

void Reductions::join_moments(const Root& root, const ValueList& values, llvm::Value* before, llvm::Value* count) {
  const int lanes = lanes_of(root.totals[0]->getAllocatedType());
  const auto as_row_value = [&](llvm::Value* n) { return e_.widen(b_.CreateSIToFP(n, b_.getDoubleTy()), lanes); };
  llvm::Value* const old_size = as_row_value(before);
  llvm::Value* const size = as_row_value(count);
  llvm::Value* const new_size = b_.CreateFAdd(old_size, size);
  llvm::Value* const mean = total(root, 0);
  llvm::Value* const step = b_.CreateFSub(values[0], mean);
  llvm::Value* const weight = b_.CreateFDiv(b_.CreateFMul(old_size, size), new_size);
  llvm::Value* const between = b_.CreateFMul(b_.CreateFMul(step, step), weight);
  b_.CreateStore(b_.CreateFAdd(total(root, 1), b_.CreateFAdd(values[1], between)), root.totals[1]);
  llvm::Value* const sum = b_.CreateFAdd(b_.CreateFMul(mean, old_size), b_.CreateFMul(values[0], size));
  b_.CreateStore(b_.CreateFDiv(sum, new_size), root.totals[0]);
}

// The moments' own row value says in which rows the second walk is needed.
void Reductions::finish_first_walk(Row& row, const Root& root) {
  const OneWalk found = one_walk(root, {total(root, 0), total(root, 1)}, row_size(row));
  set_moments(row, root.node, found.mean, found.deviations);
  row.values[static_cast<size_t>(root.node)] = found.is_far;
}

void Reductions::finish_second_walk(Row& row, const Root& root) {
  const ValueList found = second_walk(row, root, {total(root, 0), total(root, 1)}, row_size(row));
  const Row before = row;
  set_moments(row, root.node, found[0], found[1]);
  llvm::Value* const is_far = before.values[static_cast<size_t>(root.node)];
  const auto choose = [&](const ValueList& old, ValueList& now) {
    for (size_t i = 0; i < now.size(); ++i) {
      if (now[i] != old[i]) now[i] = b_.CreateSelect(is_far, now[i], old[i]);
    }
  };
  choose(before.values, row.values);
  choose(before.mean_high, row.mean_high);
  choose(before.mean_low, row.mean_low);
}

// Sets the values of the nodes that read the moments.
void Reductions::set_moments(Row& row, NodeIndex moments, llvm::Value* mean, llvm::Value* deviations) {
  split_mean(row, moments, mean);
  llvm::Type* const type = e_.type(node(moments).type, row.frame.lanes);
  llvm::Value* const variance = b_.CreateFDiv(deviations, row_size(row));
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != moments) continue;
    if (reader.kind == NodeKind::mean) row.values[i] = row.mean_high[static_cast<size_t>(moments)];
    if (reader.kind == NodeKind::variance)
      row.values[i] = variance->getType() == type ? variance : b_.CreateFPTrunc(variance, type);
  }
}

void Reductions::split_mean(Row& row, NodeIndex moments, llvm::Value* mean) {
  llvm::Value*& high = row.mean_high[static_cast<size_t>(moments)];
  if (node(moments).type == Type::f64) {
    high = mean;
    return;
  }
  llvm::Type* const single = mean->getType()->getWithNewType(b_.getFloatTy());
  high = b_.CreateFPTrunc(mean, single);
  row.mean_low[static_cast<size_t>(moments)] = b_.CreateFPTrunc(b_.CreateFSub(mean, to_double(high)), single);
}

// An infinite mean has a NaN residual and must stay infinite.
llvm::Value* Reductions::mean_with_residual(const Row& row, NodeIndex moments, llvm::Value* residual) {
  llvm::Value* const rounded = to_double(row.mean_high[static_cast<size_t>(moments)]);
  return b_.CreateSelect(b_.CreateFCmpUNO(residual, residual), rounded, b_.CreateFAdd(rounded, residual));
}

}  // namespace lamina::cpu
