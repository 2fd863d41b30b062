// Reductions: what the accumulators of a walk come to. A block's result goes to a total in f64.
//
// Mean and variance of a row come from one walk if its first elements stand near its mean: s being their average, d = x - s,
// the sums of d and d^2 give mean s + sum d / n and variance (sum d^2 - (sum d)^2 / n) / n, which loses no more than a bit
// while (mean - s)^2 is at most the variance. Where it is more, a second walk takes d = x - high around that mean rounded to
// f32; the average of this d is the mean's error and corrects both. That choice depends on the row's elements alone. Centring
// then takes (x - high) - low around the mean split into two floats. E[x^2] - E[x]^2 is never formed. A row of several blocks
// goes block by block, the second walk included, and joins means and squared deviations in f64, as Chan, Golub and LeVeque do
// (Updating formulae and a pairwise algorithm for computing sample variances, 1979), so that a long row is read from memory
// once.
#include <algorithm>
#include <bit>

#include "backends/cpu/emit/kernel_emitter.h"
#include "backends/cpu/schedule/tuning.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

void KernelEmitter::add_totals(RootState& root) {
  root.totals.clear();
  for (const auto& accumulator : root.accumulators) {
    const bool adds = accumulator->how() == Combine::sum || accumulator->how() == Combine::product;
    llvm::Type* const type = row_type(adds ? Type::f64 : accumulator->type());
    root.totals.push_back(e_.alloca_at_entry(type));
    b_.CreateStore(identity_of(accumulator->how(), type), root.totals.back());
  }
}

ValueList KernelEmitter::fold_all(RootState& root) {
  ValueList values;
  for (const auto& accumulator : root.accumulators) values.push_back(accumulator->fold());
  return values;
}

llvm::Value* KernelEmitter::to_double(llvm::Value* value) {
  llvm::Type* const type = row_type(Type::f64);
  return value->getType() == type ? value : b_.CreateFPExt(value, type);
}

llvm::Value* KernelEmitter::total(const RootState& root, size_t i) {
  return b_.CreateLoad(root.totals[i]->getAllocatedType(), root.totals[i]);
}

// x minus the mean, the mean given as high + low; with a scale (x - high) * scale - low * scale, rounded once at the end.
llvm::Value* KernelEmitter::centered(Row& row, NodeIndex moments, llvm::Value* value, llvm::Value* scale) {
  const auto slot = static_cast<size_t>(moments);
  const int width = lanes_of(value);
  llvm::Value* const difference = b_.CreateFSub(value, e_.widen(row.mean_high[slot], width));
  llvm::Value* const low = row.mean_low[slot];
  if (scale == nullptr) return low == nullptr ? difference : b_.CreateFSub(difference, e_.widen(low, width));
  if (low == nullptr) return b_.CreateFMul(difference, scale);
  return e_.fma(difference, scale, b_.CreateFNeg(b_.CreateFMul(e_.widen(low, width), scale)));
}

// The values of an element node at some positions of the row.
std::vector<llvm::Value*> KernelEmitter::elements(Row& row, NodeIndex root, const std::vector<Lanes>& positions) {
  if (!node(root).per_element) return ValueList(positions.size(), e_.widen(row.values[static_cast<size_t>(root)], e_.width));
  const std::vector<bool> needed = kernel::element_nodes_of(kernel_, root);
  NodeList nodes;
  for (size_t i = 0; i < needed.size(); ++i) {
    if (needed[i]) nodes.push_back(static_cast<NodeIndex>(i));
  }
  std::vector<ElementValues> all = transposed_loads(row, nodes, 0, positions);
  ValueList values;
  for (size_t p = 0; p < positions.size(); ++p) {
    const Lanes& lanes = positions[p];
    ElementValues& known = all[p];
    for (size_t i = 0; i <= static_cast<size_t>(root); ++i) {
      if (needed[i] && known[i] == nullptr) known[i] = element_value(row, static_cast<NodeIndex>(i), lanes, known);
    }
    values.push_back(known[static_cast<size_t>(root)]);
  }
  return values;
}

void KernelEmitter::begin_roots(Row& row, const NodeList& roots, int phase) {
  begun_roots_.clear();
  for (const NodeIndex root : roots) begun_roots_.push_back(begin_root(row, root, phase));
  roots_ = begun_roots_;
}

KernelEmitter::RootState KernelEmitter::begin_root(Row& row, NodeIndex index, int phase) {
  const Node& n = node(index);
  RootState root{index, {}, {}, nullptr, false, {}};
  if (n.kind == NodeKind::reduce) {
    root.accumulators.push_back(make_accumulator(e_, combine_of(n.reduction), n.type));
    add_totals(root);
  } else if (n.kind == NodeKind::moments) {
    const bool first_walk = phases_.loop_of(index) == phase;
    root.by_block = first_walk && phases_.moments_by_block();
    for (int i = 0; i < 2; ++i) root.accumulators.push_back(make_accumulator(e_, Combine::sum, n.type));
    add_totals(root);
    if (first_walk) begin_moments(row, root);
  }
  return root;
}

// The average of the row's first elements, as many as a power of two up to 16 of them. Being close to the mean matters, not
// being exact; of equal elements it is exact. Rounded to the precision of 16-bit data it leaves differences, and sums of them,
// that are exact or nearly so. An infinity or NaN would turn every difference into NaN; 0 does not.
void KernelEmitter::begin_moments(Row& row, RootState& root) {
  root.shift = row.shifts[static_cast<size_t>(root.node)];
  if (root.shift != nullptr) return;
  llvm::Value* const parts = add_shift_elements(row, root.node);
  root.shift = shift_from(root.node,
                          e_.across_rows() ? parts : fold_lanes(e_, Combine::sum, parts, std::min(shift_elements(), e_.width)));
}

int KernelEmitter::shift_elements() const {
  return static_cast<int>(std::bit_floor(static_cast<uint64_t>(std::min<int64_t>(kShiftElements, kernel_.extents.back()))));
}

// As far as one vector.
llvm::Value* KernelEmitter::add_shift_elements(Row& row, NodeIndex moments) {
  const int count = shift_elements();
  if (kernel_.row_size() == 0) return llvm::Constant::getNullValue(e_.type(node(moments).type, e_.width));
  ValueList some = elements(row, node(moments).operands[0], positions_from(i64(0), count));
  for (llvm::Value*& value : some) value = b_.CreateFMul(value, llvm::ConstantFP::get(value->getType(), 1.0 / count));
  while (some.size() > 1) {
    const size_t half = some.size() / 2;
    for (size_t i = 0; i < half; ++i) some[i] = b_.CreateFAdd(some[i], some[i + half]);
    some.resize(half);
  }
  return some[0];
}

llvm::Value* KernelEmitter::shift_from(NodeIndex moments, llvm::Value* average) {
  const DataType coarse = kernel::data_precision(kernel_, node(moments).operands[0]);
  if (coarse != DataType::undef) average = memory_.round_trip(coarse, node(moments).type, average);
  llvm::Value* const zero = llvm::Constant::getNullValue(average->getType());
  return b_.CreateSelect(b_.CreateFCmpOEQ(b_.CreateFSub(average, average), zero), average, zero);
}

void KernelEmitter::accumulate_root(Row& row, RootState& root, int phase, llvm::Value* operand, const Lanes& lanes) {
  const Node& n = node(root.node);
  if (n.kind == NodeKind::reduce) {
    root.accumulators[0]->add(operand, lanes);
    return;
  }
  llvm::Value* const middle = phases_.loop_of(root.node) == phase ? root.shift : row.mean_high[static_cast<size_t>(root.node)];
  llvm::Value* const d = b_.CreateFSub(operand, e_.widen(middle, lanes.width));
  root.accumulators[0]->add(d, lanes);
  root.accumulators[1]->add_square(d, lanes);
}

bool KernelEmitter::roots_reduce() const {
  return std::any_of(roots_.begin(), roots_.end(), [](const RootState& root) { return !root.accumulators.empty(); });
}

bool KernelEmitter::streams(int arg) const {
  return streams() && std::find(schedule_.streamed.begin(), schedule_.streamed.end(), arg) != schedule_.streamed.end();
}

void KernelEmitter::flush_roots() {
  for (RootState& root : roots_) combine_block(root, fold_all(root), nullptr, nullptr);
}

// What one walk tells of `count` elements (f64) of which `sums` are the sums of x - s and its squares: mean and squared
// deviations, and whether s was too far away for them.
KernelEmitter::OneWalk KernelEmitter::one_walk(const RootState& root, const ValueList& sums, llvm::Value* count) {
  llvm::Value* const distance = b_.CreateFDiv(to_double(sums[0]), count);
  llvm::Value* const shifted = b_.CreateFMul(to_double(sums[0]), distance);
  llvm::Value* const deviations = b_.CreateFSub(to_double(sums[1]), shifted);
  return {b_.CreateFAdd(to_double(root.shift), distance), deviations, b_.CreateFCmpUGT(shifted, deviations)};
}

// After the second walk: the mean, corrected, and the squared deviations from it.
ValueList KernelEmitter::second_walk(Row& row, const RootState& root, const ValueList& sums, llvm::Value* count) {
  llvm::Value* const residual = b_.CreateFDiv(to_double(sums[0]), count);
  llvm::Value* const deviations = b_.CreateFSub(to_double(sums[1]), b_.CreateFMul(to_double(sums[0]), residual));
  llvm::Value* const negative = b_.CreateFCmpOLT(deviations, f64(0));
  return {mean_with_residual(row, root.node, residual), b_.CreateSelect(negative, f64(0), deviations)};
}

// Adds a block of `count` elements (i64) to the totals; `before`: elements so far. Only moments by block look at the counts.
void KernelEmitter::combine_block(const RootState& root, const ValueList& values, llvm::Value* before, llvm::Value* count) {
  if (!root.by_block) {
    for (size_t i = 0; i < values.size(); ++i) {
      llvm::Value* const value = root.totals[i]->getAllocatedType() == row_type(Type::f64) ? to_double(values[i]) : values[i];
      b_.CreateStore(combine(e_, root.accumulators[i]->how(), total(root, i), value), root.totals[i]);
    }
    return;
  }
  const auto as_row_value = [&](llvm::Value* n) { return e_.widen(b_.CreateSIToFP(n, b_.getDoubleTy()), row_lanes_); };
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

void KernelEmitter::finish_roots(Row& row, int phase) {
  for (const RootState& root : roots_) {
    if (root.accumulators.empty()) continue;
    const Node& n = node(root.node);
    if (n.kind == NodeKind::reduce)
      finish_reduction(row, root);
    else if (root.by_block)
      finish_blocks(row, root);
    else if (phases_.loop_of(root.node) == phase)
      finish_first_walk(row, root);
    else
      finish_second_walk(row, root);
  }
}

void KernelEmitter::finish_reduction(Row& row, const RootState& root) {
  llvm::Value* const result = total(root, 0);
  llvm::Type* const type = row_type(node(root.node).type);
  row.values[static_cast<size_t>(root.node)] = result->getType() == type ? result : b_.CreateFPTrunc(result, type);
}

void KernelEmitter::finish_blocks(Row& row, const RootState& root) {
  set_moments(row, root.node, total(root, 0), total(root, 1));
}

// The moments' own row value says in which rows the second walk decides.
void KernelEmitter::finish_first_walk(Row& row, const RootState& root) {
  const OneWalk found = one_walk(root, {total(root, 0), total(root, 1)}, row_size());
  set_moments(row, root.node, found.mean, found.deviations);
  row.values[static_cast<size_t>(root.node)] = found.is_far;
}

void KernelEmitter::finish_second_walk(Row& row, const RootState& root) {
  const ValueList found = second_walk(row, root, {total(root, 0), total(root, 1)}, row_size());
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

// What the nodes that read the moments see.
void KernelEmitter::set_moments(Row& row, NodeIndex moments, llvm::Value* mean, llvm::Value* deviations) {
  split_mean(row, moments, mean);
  llvm::Type* const type = row_type(node(moments).type);
  llvm::Value* const variance = b_.CreateFDiv(deviations, row_size());
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != moments) continue;
    if (reader.kind == NodeKind::mean) row.values[i] = row.mean_high[static_cast<size_t>(moments)];
    if (reader.kind == NodeKind::variance)
      row.values[i] = variance->getType() == type ? variance : b_.CreateFPTrunc(variance, type);
  }
}

void KernelEmitter::split_mean(Row& row, NodeIndex moments, llvm::Value* mean) {
  llvm::Value*& high = row.mean_high[static_cast<size_t>(moments)];
  if (node(moments).type == Type::f64) {
    high = mean;
    return;
  }
  high = b_.CreateFPTrunc(mean, row_type(Type::f32));
  row.mean_low[static_cast<size_t>(moments)] = b_.CreateFPTrunc(b_.CreateFSub(mean, to_double(high)), row_type(Type::f32));
}

// The residual of an infinite mean is NaN; such a mean stays what it is.
llvm::Value* KernelEmitter::mean_with_residual(Row& row, NodeIndex moments, llvm::Value* residual) {
  llvm::Value* const rounded = to_double(row.mean_high[static_cast<size_t>(moments)]);
  return b_.CreateSelect(b_.CreateFCmpUNO(residual, residual), rounded, b_.CreateFAdd(rounded, residual));
}

}  // namespace lamina::cpu
