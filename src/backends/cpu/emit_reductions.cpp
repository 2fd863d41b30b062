// Accumulators and the roots that fill them.
//
// An accumulator has 64 virtual lanes in vectors of the machine's width. At the end of a block the lanes are folded: lane l
// with l + 32, then l + 16, ... which is the same tree for every width; the block's result goes to a total in f64.
//
// Mean and variance take two walks over the row. The first sums x - s, s being the row's first element, so that a large common
// offset costs no accuracy. The second takes d = x - high around that mean rounded to f32, sums d^2, and sums d as well: the
// average of d is the mean's error, which corrects the mean and the variance. Centring then takes (x - high) - low around the
// corrected mean split into two floats. E[x^2] - E[x]^2 is never formed.
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
  Accumulator accumulator{how, type, {}, nullptr};
  for (int lane = 0; lane < kVirtualLanes; lane += width_) accumulator.lanes.push_back(alloca_at_entry(llvm_type(type, width_)));
  const bool adds = how == Combine::sum || how == Combine::product;
  accumulator.total = alloca_at_entry(adds ? b_.getDoubleTy() : llvm_type(type, 1));
  reset(accumulator);
  return accumulator;
}

void KernelEmitter::reset(const Accumulator& accumulator) {
  b_.CreateStore(identity(accumulator.combine, accumulator.total->getAllocatedType()), accumulator.total);
  reset_lanes(accumulator);
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

void KernelEmitter::flush(const Accumulator& accumulator) {
  std::vector<llvm::Value*> vectors;
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
  llvm::Value* block = width_ > 1 ? b_.CreateExtractElement(folded, i64(0)) : folded;
  llvm::Type* const total_type = accumulator.total->getAllocatedType();
  if (block->getType() != total_type) block = b_.CreateFPExt(block, total_type);
  b_.CreateStore(combine(accumulator.combine, b_.CreateLoad(total_type, accumulator.total), block), accumulator.total);
  reset_lanes(accumulator);
}

llvm::Value* KernelEmitter::total(const Accumulator& accumulator) {
  return b_.CreateLoad(accumulator.total->getAllocatedType(), accumulator.total);
}

// x minus the mean, the mean given as high + low; with a scale (x - high) * scale - low * scale, rounded once at the end.
llvm::Value* KernelEmitter::centered(Row& row, NodeIndex moments, llvm::Value* value, llvm::Value* scale) {
  const auto slot = static_cast<size_t>(moments_slot(moments));
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

KernelEmitter::RootState KernelEmitter::begin_root(Row& row, NodeIndex index, int phase) {
  const Node& n = node(index);
  RootState root{index, {}, nullptr};
  if (n.kind == NodeKind::reduce) {
    static constexpr Combine how[] = {Combine::sum, Combine::maximum, Combine::minimum, Combine::product};
    root.accumulators.push_back(make_accumulator(how[static_cast<size_t>(n.reduction)], n.type));
    return root;
  }
  root.accumulators.push_back(make_accumulator(Combine::sum, n.type));
  const bool first_walk = loop_of(n) == phase;
  if (!first_walk) {
    root.accumulators.push_back(make_accumulator(Combine::sum, n.type));
    return root;
  }
  // An infinite or NaN first element would turn every difference into NaN; 0 does not. An empty row has no element at all.
  llvm::Value* const zero = llvm::Constant::getNullValue(llvm_type(n.type, 1));
  if (kernel_.row_size() == 0) {
    root.shift = zero;
    return root;
  }
  llvm::Value* const first = first_element(row, n.operands[0]);
  root.shift = b_.CreateSelect(b_.CreateFCmpOEQ(b_.CreateFSub(first, first), zero), first, zero);
  return root;
}

void KernelEmitter::accumulate_root(Row& row, RootState& root, int phase, size_t vector, llvm::Value* operand, const Lanes& lanes) {
  const Node& n = node(root.node);
  if (n.kind == NodeKind::reduce) {
    accumulate(root.accumulators[0], vector, operand, lanes);
  } else if (loop_of(n) == phase) {
    accumulate(root.accumulators[0], vector, b_.CreateFSub(operand, widen(root.shift, lanes.width)), lanes);
  } else {
    llvm::Value* const d = b_.CreateFSub(operand, widen(row.mean_high[static_cast<size_t>(root.node)], lanes.width));
    accumulate(root.accumulators[0], vector, d, lanes);
    accumulate_product(root.accumulators[1], vector, d, lanes);
  }
}

void KernelEmitter::finish_root(Row& row, RootState& root, int phase) {
  const Node& n = node(root.node);
  const auto slot = static_cast<size_t>(moments_slot(root.node));
  llvm::Type* const type = llvm_type(n.type, 1);
  if (n.kind == NodeKind::reduce) {
    llvm::Value* const result = total(root.accumulators[0]);
    row.values[static_cast<size_t>(root.node)] = result->getType() == type ? result : b_.CreateFPTrunc(result, type);
    return;
  }
  const auto split = [&](llvm::Value* wide) {
    row.mean_high[slot] = n.type == Type::f64 ? wide : b_.CreateFPTrunc(wide, type);
    row.mean_low[slot] = n.type == Type::f64 ? nullptr : b_.CreateFPTrunc(b_.CreateFSub(wide, b_.CreateFPExt(row.mean_high[slot], b_.getDoubleTy())), type);
  };
  llvm::Value* const size = llvm::ConstantFP::get(b_.getDoubleTy(), static_cast<double>(kernel_.row_size()));
  llvm::Value* const average = b_.CreateFDiv(total(root.accumulators[0]), size);
  if (loop_of(n) == phase) {
    llvm::Value* const shift = n.type == Type::f64 ? root.shift : b_.CreateFPExt(root.shift, b_.getDoubleTy());
    split(b_.CreateFAdd(shift, average));
    return;
  }
  llvm::Value* const squares = b_.CreateFDiv(total(root.accumulators[1]), size);
  llvm::Value* variance = b_.CreateFSub(squares, b_.CreateFMul(average, average));
  llvm::Value* const zero = llvm::Constant::getNullValue(b_.getDoubleTy());
  variance = b_.CreateSelect(b_.CreateFCmpOLT(variance, zero), zero, variance);
  // The residual of an infinite mean is NaN; such a mean stays what it is.
  llvm::Value* const rounded = n.type == Type::f64 ? row.mean_high[slot] : b_.CreateFPExt(row.mean_high[slot], b_.getDoubleTy());
  split(b_.CreateSelect(b_.CreateFCmpUNO(average, average), rounded, b_.CreateFAdd(rounded, average)));
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& reader = kernel_.nodes[i];
    if (reader.operands[0] != root.node) continue;
    if (reader.kind == NodeKind::mean) row.values[i] = row.mean_high[slot];
    if (reader.kind == NodeKind::variance) row.values[i] = n.type == Type::f64 ? variance : b_.CreateFPTrunc(variance, type);
  }
}

}  // namespace lamina::cpu
