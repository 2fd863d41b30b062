// Reductions: the results of a walk's accumulators. A block's result is added to a total in f64. Mean and variance:
// moments.cpp.
#include "backends/cpu/emit/reductions.h"

#include <algorithm>

namespace lamina::cpu {

using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Type;

bool reduce(std::span<const Root> roots) {
  return std::any_of(roots.begin(), roots.end(), [](const Root& root) { return root.reduces(); });
}

std::vector<Root> Reductions::begin(const Row& row, const NodeList& roots, int phase) {
  std::vector<Root> begun;
  for (const NodeIndex root : roots) begun.push_back(begin_root(row, root, phase));
  return begun;
}

Root Reductions::begin_root(const Row& row, NodeIndex index, int phase) {
  const Node& n = node(index);
  Root root{.node = index};
  if (n.kind == NodeKind::reduce || n.kind == NodeKind::segment_sum) {
    root.accumulators.push_back(make_accumulator(e_, combine_of(n.reduction), n.type));
    add_totals(root, row.frame.lanes);
  } else if (n.kind == NodeKind::moments) {
    const bool first_walk = plan_.loop_of(index) == phase;
    root.by_block = first_walk && plan_.moments_by_block();
    for (int i = 0; i < 2; ++i) root.accumulators.push_back(make_accumulator(e_, Combine::sum, n.type));
    add_totals(root, row.frame.lanes);
    if (first_walk) root.shift = shift_of(row, index);
  }
  return root;
}

void Reductions::add_totals(Root& root, int lanes) {
  root.totals.clear();
  for (const auto& accumulator : root.accumulators) {
    const bool adds = accumulator->how() == Combine::sum || accumulator->how() == Combine::product;
    llvm::Type* const type = e_.type(adds ? Type::f64 : accumulator->type(), lanes);
    root.totals.push_back(e_.alloca_at_entry(type));
    b_.CreateStore(identity_of(accumulator->how(), type), root.totals.back());
  }
}

llvm::Value* Reductions::total(const Root& root, size_t i) {
  return b_.CreateLoad(root.totals[i]->getAllocatedType(), root.totals[i]);
}

llvm::Value* Reductions::to_double(llvm::Value* value) {
  llvm::Type* const type = value->getType()->getWithNewType(b_.getDoubleTy());
  return value->getType() == type ? value : b_.CreateFPExt(value, type);
}

llvm::Value* Reductions::row_size(const Row& row) {
  return llvm::ConstantFP::get(e_.type(Type::f64, row.frame.lanes), static_cast<double>(kernel_.row_size()));
}

void Reductions::add(const Row& row, Root& root, int phase, const ValueList& operands, std::span<const Lanes> lanes) {
  const Node& n = node(root.node);
  if (n.kind == NodeKind::reduce || n.kind == NodeKind::segment_sum) return root.accumulators[0]->add(operands, lanes);
  llvm::Value* const middle = plan_.loop_of(root.node) == phase ? root.shift : row.mean_high[static_cast<size_t>(root.node)];
  for (size_t i = 0; i < operands.size(); ++i) {
    llvm::Value* const d = b_.CreateFSub(operands[i], e_.widen(middle, lanes[i].width));
    root.accumulators[0]->add({&d, 1}, lanes.subspan(i, 1));
    root.accumulators[1]->add_square(d, lanes[i]);
  }
}

ValueList Reductions::fold(Root& root) {
  ValueList values;
  for (const auto& accumulator : root.accumulators) values.push_back(accumulator->fold());
  return values;
}

void Reductions::fold_to_totals(std::span<Root> roots) {
  for (Root& root : roots) add_block(root, fold(root), nullptr, nullptr);
}

void Reductions::add_block(const Root& root, const ValueList& values, llvm::Value* before, llvm::Value* count) {
  if (root.by_block) return join_moments(root, values, before, count);
  for (size_t i = 0; i < values.size(); ++i) {
    llvm::Value* const value =
        root.totals[i]->getAllocatedType()->getScalarType()->isDoubleTy() ? to_double(values[i]) : values[i];
    b_.CreateStore(combine(e_, root.accumulators[i]->how(), total(root, i), value), root.totals[i]);
  }
}

void Reductions::finish(Row& row, std::span<const Root> roots, int phase) {
  for (const Root& root : roots) {
    const Node& n = node(root.node);
    if (!root.reduces() || n.kind == NodeKind::segment_sum) continue;
    if (n.kind == NodeKind::reduce)
      finish_reduction(row, root);
    else if (root.by_block)
      set_moments(row, root.node, total(root, 0), total(root, 1));
    else if (plan_.loop_of(root.node) == phase)
      finish_first_walk(row, root);
    else
      finish_second_walk(row, root);
  }
}

void Reductions::end_segment(const Row& row, Root& root) {
  const Node& n = node(root.node);
  add_block(root, fold(root), nullptr, nullptr);
  llvm::Type* const type = e_.type(n.type, 1);
  llvm::Value* const sum = total(root, 0);
  memory_.store_arg(row.segment[static_cast<size_t>(n.arg)], {n.arg, n.type},
                    sum->getType() == type ? sum : b_.CreateFPTrunc(sum, type), {}, 0);
  b_.CreateStore(llvm::Constant::getNullValue(sum->getType()), root.totals[0]);
}

void Reductions::finish_reduction(Row& row, const Root& root) {
  llvm::Value* const result = total(root, 0);
  llvm::Type* const type = e_.type(node(root.node).type, row.frame.lanes);
  row.values[static_cast<size_t>(root.node)] = result->getType() == type ? result : b_.CreateFPTrunc(result, type);
}

}  // namespace lamina::cpu
