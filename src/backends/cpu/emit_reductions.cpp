// Accumulators and the roots that fill them.
//
// An accumulator has 64 virtual lanes in vectors of the machine's width. At the end of a block the lanes are folded: lane l
// with l + 32, then l + 16, ... which is the same tree for every width; the block's result goes to a total in f64.
//
// Mean and variance take two walks. The first sums x - s, s being the first element, so that a large common offset costs no
// accuracy. The second takes d = x - high around that mean rounded to f32, sums d^2, and sums d as well: the average of d is the
// mean's error, which corrects the mean and the variance. Centring then takes (x - high) - low around the corrected mean split
// into two floats. E[x^2] - E[x]^2 is never formed. A row of several blocks takes both walks over each block and joins means and
// squared deviations in f64, as Chan, Golub and LeVeque do (Updating formulae and a pairwise algorithm for computing sample
// variances, 1979), so that a long row is read from memory once.
#include <algorithm>
#include <limits>

#include "backends/cpu/kernel_emitter.h"

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

llvm::Value* KernelEmitter::combine(Combine how, llvm::Value* a, llvm::Value* b) {
  switch (how) {
    case Combine::sum: return a->getType()->isIntOrIntVectorTy() ? b_.CreateAdd(a, b) : b_.CreateFAdd(a, b);
    case Combine::product: return b_.CreateFMul(a, b);
    case Combine::maximum: return maximum(a, b);
    case Combine::minimum: return minimum(a, b);
  }
  return nullptr;
}

llvm::Value* KernelEmitter::identity(Combine how, llvm::Type* type) {
  const double infinity = std::numeric_limits<double>::infinity();
  const double value = how == Combine::sum ? 0 : how == Combine::product ? 1 : how == Combine::maximum ? -infinity : infinity;
  return llvm::ConstantFP::get(type, value);
}

KernelEmitter::Accumulator KernelEmitter::make_accumulator(Combine how, Type type) {
  Accumulator accumulator{how, type, {}};
  for (int lane = 0; lane < kVirtualLanes; lane += width_) accumulator.lanes.push_back(alloca_at_entry(llvm_type(type, width_)));
  reset_lanes(accumulator);
  return accumulator;
}

void KernelEmitter::add_total(RootState& root, Combine how, llvm::Type* type) {
  root.totals.push_back(alloca_at_entry(type));
  b_.CreateStore(identity(how, type), root.totals.back());
}

void KernelEmitter::reset_lanes(const Accumulator& accumulator) {
  for (llvm::AllocaInst* lane : accumulator.lanes) b_.CreateStore(identity(accumulator.combine, lane->getAllocatedType()), lane);
}

void KernelEmitter::accumulate(const Accumulator& accumulator, size_t vector, llvm::Value* value, const Lanes& lanes) {
  llvm::AllocaInst* const slot = accumulator.lanes[vector];
  if (lanes.mask != nullptr) value = b_.CreateSelect(lanes.mask, value, identity(accumulator.combine, value->getType()));
  b_.CreateStore(combine(accumulator.combine, b_.CreateLoad(slot->getAllocatedType(), slot), value), slot);
}

void KernelEmitter::accumulate_product(const Accumulator& accumulator, size_t vector, llvm::Value* a, const Lanes& lanes) {
  llvm::AllocaInst* const slot = accumulator.lanes[vector];
  if (lanes.mask != nullptr) a = b_.CreateSelect(lanes.mask, a, llvm::Constant::getNullValue(a->getType()));
  b_.CreateStore(fma(a, a, b_.CreateLoad(slot->getAllocatedType(), slot)), slot);
}

llvm::Value* KernelEmitter::fold(const Accumulator& accumulator) {
  Values vectors;
  for (llvm::AllocaInst* lane : accumulator.lanes) vectors.push_back(b_.CreateLoad(lane->getAllocatedType(), lane));
  while (vectors.size() > 1) {
    const size_t half = vectors.size() / 2;
    for (size_t i = 0; i < half; ++i) vectors[i] = combine(accumulator.combine, vectors[i], vectors[i + half]);
    vectors.resize(half);
  }
  llvm::Value* folded = vectors[0];
  for (int half = width_ / 2; half >= 1; half /= 2) {
    std::vector<int> low, high;
    for (int lane = 0; lane < half; ++lane) {
      low.push_back(lane);
      high.push_back(lane + half);
    }
    folded = combine(accumulator.combine, b_.CreateShuffleVector(folded, low), b_.CreateShuffleVector(folded, high));
  }
  reset_lanes(accumulator);
  return width_ > 1 ? b_.CreateExtractElement(folded, i64(0)) : folded;
}

KernelEmitter::Values KernelEmitter::fold_all(const RootState& root) {
  Values values;
  for (const Accumulator& accumulator : root.accumulators) values.push_back(fold(accumulator));
  return values;
}

llvm::Value* KernelEmitter::to_double(llvm::Value* value) {
  return value->getType()->isDoubleTy() ? value : b_.CreateFPExt(value, b_.getDoubleTy());
}

llvm::Value* KernelEmitter::total(const RootState& root, size_t i) {
  return b_.CreateLoad(root.totals[i]->getAllocatedType(), root.totals[i]);
}

// x minus the mean, the mean given as high + low; with a scale (x - high) * scale - low * scale, rounded once at the end.
llvm::Value* KernelEmitter::centered(Row& row, NodeIndex moments, llvm::Value* value, llvm::Value* scale) {
  const auto slot = static_cast<size_t>(moments);
  const int width = value->getType()->isVectorTy() ? static_cast<int>(llvm::cast<llvm::FixedVectorType>(value->getType())->getNumElements()) : 1;
  llvm::Value* const difference = b_.CreateFSub(value, widen(row.mean_high[slot], width));
  llvm::Value* const low = row.mean_low[slot];
  if (scale == nullptr) return low == nullptr ? difference : b_.CreateFSub(difference, widen(low, width));
  if (low == nullptr) return b_.CreateFMul(difference, scale);
  return fma(difference, scale, b_.CreateFNeg(b_.CreateFMul(widen(low, width), scale)));
}

// The value of an element node at the row's first position.
llvm::Value* KernelEmitter::first_element(Row& row, NodeIndex root) {
  if (!node(root).per_element) return row.values[static_cast<size_t>(root)];
  std::vector<bool> needed(kernel_.nodes.size(), false);
  needed[static_cast<size_t>(root)] = true;
  for (auto i = static_cast<size_t>(root) + 1; i-- > 0;) {
    const Node& n = kernel_.nodes[i];
    for (int k = 0; needed[i] && n.per_element && k < kernel::operand_count(n); ++k) {
      needed[static_cast<size_t>(n.operands[static_cast<size_t>(k)])] = true;
    }
  }
  ElementValues known(kernel_.nodes.size(), nullptr);
  const Lanes first{1, i64(0), nullptr};
  for (size_t i = 0; i <= static_cast<size_t>(root); ++i) {
    if (needed[i] && kernel_.nodes[i].per_element) known[i] = element_value(row, static_cast<NodeIndex>(i), first, known);
  }
  return known[static_cast<size_t>(root)];
}

void KernelEmitter::begin_roots(Row& row, const NodeList& roots, int phase) {
  roots_.clear();
  for (const NodeIndex root : roots) roots_.push_back(begin_root(row, root, phase));
}

KernelEmitter::RootState KernelEmitter::begin_root(Row& row, NodeIndex index, int phase) {
  const Node& n = node(index);
  RootState root{index, {}, {}, nullptr, false, {}};
  if (n.kind == NodeKind::reduce) {
    static constexpr Combine all[] = {Combine::sum, Combine::maximum, Combine::minimum, Combine::product};
    const Combine how = all[static_cast<size_t>(n.reduction)];
    root.accumulators.push_back(make_accumulator(how, n.type));
    const bool adds = how == Combine::sum || how == Combine::product;
    add_total(root, how, adds ? b_.getDoubleTy() : llvm_type(n.type, 1));
  } else if (n.kind == NodeKind::moments) {
    const bool first_walk = loop_of(index) == phase;
    root.by_block = first_walk && moments_by_block();
    const int sums = root.by_block ? 3 : first_walk ? 1 : 2;
    for (int i = 0; i < sums; ++i) root.accumulators.push_back(make_accumulator(Combine::sum, n.type));
    for (int i = 0; i < std::min(sums, 2); ++i) add_total(root, Combine::sum, b_.getDoubleTy());
    if (first_walk) begin_moments(row, root);
  }
  return root;
}

// An infinite or NaN first element would turn every difference into NaN; 0 does not. An empty row has no element at all.
void KernelEmitter::begin_moments(Row& row, RootState& root) {
  llvm::Value* const zero = llvm::Constant::getNullValue(llvm_type(node(root.node).type, 1));
  root.shift = zero;
  if (kernel_.row_size() == 0) return;
  llvm::Value* const first = first_element(row, node(root.node).operands[0]);
  root.shift = b_.CreateSelect(b_.CreateFCmpOEQ(b_.CreateFSub(first, first), zero), first, zero);
}

void KernelEmitter::accumulate_root(Row& row, RootState& root, int phase, size_t vector, llvm::Value* operand, const Lanes& lanes) {
  const Node& n = node(root.node);
  if (n.kind == NodeKind::reduce) {
    accumulate(root.accumulators[0], vector, operand, lanes);
  } else if (loop_of(root.node) == phase) {
    accumulate(root.accumulators[0], vector, b_.CreateFSub(operand, widen(root.shift, lanes.width)), lanes);
  } else {
    const size_t residual = root.by_block ? 1 : 0;
    llvm::Value* const d = b_.CreateFSub(operand, widen(row.mean_high[static_cast<size_t>(root.node)], lanes.width));
    accumulate(root.accumulators[residual], vector, d, lanes);
    accumulate_product(root.accumulators[residual + 1], vector, d, lanes);
  }
}

bool KernelEmitter::roots_reduce() const {
  return std::any_of(roots_.begin(), roots_.end(), [](const RootState& root) { return !root.accumulators.empty(); });
}

void KernelEmitter::flush_roots() {
  for (const RootState& root : roots_) combine_block(root, fold_all(root), nullptr, nullptr);
}

// Between the two walks over a block of `count` elements: the mean that the second one takes away.
void KernelEmitter::begin_deviations(Row& row, RootState& root, int64_t count) {
  llvm::Value* const average = b_.CreateFDiv(to_double(fold(root.accumulators[0])), f64(static_cast<double>(count)));
  split_mean(row, root.node, b_.CreateFAdd(to_double(root.shift), average));
}

// The block's mean and the sum of its squared deviations from it, f64.
KernelEmitter::Values KernelEmitter::finish_deviations(Row& row, RootState& root, int64_t count) {
  llvm::Value* const size = f64(static_cast<double>(count));
  llvm::Value* const residual = b_.CreateFDiv(to_double(fold(root.accumulators[1])), size);
  llvm::Value* const squares = to_double(fold(root.accumulators[2]));
  llvm::Value* const deviations = b_.CreateFSub(squares, b_.CreateFMul(size, b_.CreateFMul(residual, residual)));
  llvm::Value* const negative = b_.CreateFCmpOLT(deviations, f64(0));
  return {mean_with_residual(row, root.node, residual), b_.CreateSelect(negative, f64(0), deviations)};
}

// Adds a block of `count` elements (i64) to the totals; `before`: elements so far. Only moments by block look at the counts.
void KernelEmitter::combine_block(const RootState& root, const Values& values, llvm::Value* before, llvm::Value* count) {
  if (!root.by_block) {
    for (size_t i = 0; i < values.size(); ++i) {
      llvm::Value* const value = root.totals[i]->getAllocatedType()->isDoubleTy() ? to_double(values[i]) : values[i];
      b_.CreateStore(combine(root.accumulators[i].combine, total(root, i), value), root.totals[i]);
    }
    return;
  }
  llvm::Value* const old_size = b_.CreateSIToFP(before, b_.getDoubleTy());
  llvm::Value* const size = b_.CreateSIToFP(count, b_.getDoubleTy());
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
    if (n.kind == NodeKind::reduce) finish_reduction(row, root);
    else if (root.by_block) finish_blocks(row, root);
    else if (loop_of(root.node) == phase) finish_mean(row, root);
    else finish_variance(row, root);
  }
}

void KernelEmitter::finish_reduction(Row& row, const RootState& root) {
  llvm::Value* const result = total(root, 0);
  llvm::Type* const type = llvm_type(node(root.node).type, 1);
  row.values[static_cast<size_t>(root.node)] = result->getType() == type ? result : b_.CreateFPTrunc(result, type);
}

void KernelEmitter::finish_blocks(Row& row, const RootState& root) {
  split_mean(row, root.node, total(root, 0));
  set_moments(row, root.node, b_.CreateFDiv(total(root, 1), row_size()));
}

void KernelEmitter::finish_mean(Row& row, const RootState& root) {
  split_mean(row, root.node, b_.CreateFAdd(to_double(root.shift), b_.CreateFDiv(total(root, 0), row_size())));
}

void KernelEmitter::finish_variance(Row& row, const RootState& root) {
  llvm::Value* const residual = b_.CreateFDiv(total(root, 0), row_size());
  llvm::Value* const squares = b_.CreateFDiv(total(root, 1), row_size());
  llvm::Value* const variance = b_.CreateFSub(squares, b_.CreateFMul(residual, residual));
  split_mean(row, root.node, mean_with_residual(row, root.node, residual));
  set_moments(row, root.node, b_.CreateSelect(b_.CreateFCmpOLT(variance, f64(0)), f64(0), variance));
}

// What the nodes that read the moments see; the mean has been split.
void KernelEmitter::set_moments(Row& row, NodeIndex moments, llvm::Value* variance) {
  llvm::Type* const type = llvm_type(node(moments).type, 1);
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != moments) continue;
    if (reader.kind == NodeKind::mean) row.values[i] = row.mean_high[static_cast<size_t>(moments)];
    if (reader.kind == NodeKind::variance) row.values[i] = type->isDoubleTy() ? variance : b_.CreateFPTrunc(variance, type);
  }
}

void KernelEmitter::split_mean(Row& row, NodeIndex moments, llvm::Value* mean) {
  llvm::Value*& high = row.mean_high[static_cast<size_t>(moments)];
  if (node(moments).type == Type::f64) {
    high = mean;
    return;
  }
  high = b_.CreateFPTrunc(mean, b_.getFloatTy());
  row.mean_low[static_cast<size_t>(moments)] = b_.CreateFPTrunc(b_.CreateFSub(mean, to_double(high)), b_.getFloatTy());
}

// The residual of an infinite mean is NaN; such a mean stays what it is.
llvm::Value* KernelEmitter::mean_with_residual(Row& row, NodeIndex moments, llvm::Value* residual) {
  llvm::Value* const rounded = to_double(row.mean_high[static_cast<size_t>(moments)]);
  return b_.CreateSelect(b_.CreateFCmpUNO(residual, residual), rounded, b_.CreateFAdd(rounded, residual));
}

}  // namespace lamina::cpu
