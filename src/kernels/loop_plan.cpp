#include "kernels/loop_plan.h"

#include <algorithm>

#include "kernels/numerics.h"

namespace lamina::kernel {

namespace {

bool is_real(const Node& n) { return kernel::is_real(n.type); }

std::vector<bool> marks_of(const NodeList& list, size_t nodes) {
  std::vector<bool> marks(nodes, false);
  for (const NodeIndex i : list) marks[static_cast<size_t>(i)] = true;
  return marks;
}

}  // namespace

bool moments_by_block(const Kernel& kernel) {
  return kernel.extents.size() == static_cast<size_t>(kernel.outer_rank) + 1 && kernel.row_size() > numerics::kBlock;
}

std::vector<CostClass> cost_classes(const Kernel& kernel) {
  std::vector<CostClass> costs;
  for (const Node& n : kernel.nodes) {
    CostClass cost = cost_of(n);
    for (int k = 0; n.kind == NodeKind::map && k < operand_count(n); ++k) {
      const NodeIndex operand = n.operands[static_cast<size_t>(k)];
      if (!is_real(kernel.node(operand)) && costs[static_cast<size_t>(operand)] == CostClass::random) cost = CostClass::random;
    }
    costs.push_back(cost);
  }
  return costs;
}

LoopPlan::LoopPlan(const Kernel& kernel, const LoopPolicy& policy)
    : kernel_(kernel),
      moments_by_block_(policy.moments_by_block),
      cost_(cost_classes(kernel)),
      loop_(kernel.nodes.size(), -1),
      live_since_(kernel.nodes.size(), -1),
      phases_(static_cast<size_t>(kernel.phase_count())) {
  // A reduction runs in the loop that computes its operand, a column sum in the last loop.
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    const Node& n = kernel.nodes[i];
    if (n.kind == NodeKind::column_sum) loop_[i] = last();
    if (n.kind == NodeKind::store) loop_[i] = n.phase;
    if (reduces_rows(n)) loop_[i] = node(n.operands[0]).phase;
  }
  list_phases();
  if (count() == 1) return;
  if (policy.stores != LoopPolicy::Stores::early) delay_stores(policy.stores);
  if (policy.live_space > 0) choose_live_nodes(policy);
  list_phases();
}

void LoopPlan::list_phases() {
  for (int phase = 0; phase < count(); ++phase) {
    NodeList roots = roots_of(phase), nodes = nodes_for(roots, phase);
    phases_[static_cast<size_t>(phase)] = {std::move(roots), std::move(nodes)};
  }
}

NodeList LoopPlan::roots_of(int phase) const {
  NodeList roots;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    const Node& n = kernel_.nodes[i];
    if (!reduces_rows(n) && n.kind != NodeKind::column_sum && !(n.kind == NodeKind::store && n.per_element)) continue;
    const bool second_walk = n.kind == NodeKind::moments && !moments_by_block_ && loop_[i] + 1 == phase;
    if (loop_[i] == phase || second_walk) roots.push_back(static_cast<NodeIndex>(i));
  }
  return roots;
}

NodeList LoopPlan::nodes_for(const NodeList& roots, int phase) const {
  std::vector<bool> needed(kernel_.nodes.size(), false);
  for (const NodeIndex root : roots) needed[index(node(root).operands[0])] = true;
  NodeList list;
  for (size_t i = kernel_.nodes.size(); i-- > 0;) {
    const Node& n = kernel_.nodes[i];
    if (!needed[i] || !n.per_element) continue;
    list.push_back(static_cast<NodeIndex>(i));
    if (is_read_back(static_cast<NodeIndex>(i), phase)) continue;  // its operands are not needed
    for (int k = 0; k < operand_count(n); ++k) needed[index(n.operands[static_cast<size_t>(k)])] = true;
  }
  std::reverse(list.begin(), list.end());
  return list;
}

void LoopPlan::delay_stores(LoopPolicy::Stores stores) {
  NodeList sums;
  for (size_t i = 0; i < kernel_.nodes.size(); ++i)
    if (reduces_rows(kernel_.nodes[i])) sums.push_back(static_cast<NodeIndex>(i));
  const std::vector<bool> at_last = marks_of(nodes(last()), kernel_.nodes.size()),
                          summed = marks_of(nodes_for(sums, last()), kernel_.nodes.size());
  for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
    if (kernel_.nodes[i].kind != NodeKind::store || !at_last[index(kernel_.nodes[i].operands[0])]) continue;
    bool is_expensive = false, is_known_before = false;
    for (const NodeIndex n : nodes_for({static_cast<NodeIndex>(i)}, last())) {
      if (cost(n) < CostClass::function) continue;
      is_expensive = true;
      is_known_before = is_known_before || summed[index(n)];
    }
    if (!is_known_before && (is_expensive || stores == LoopPolicy::Stores::late)) loop_[i] = last();
  }
}

// Keeps values that several walks need and that are worth their memory, as far as it suffices.
void LoopPlan::choose_live_nodes(const LoopPolicy& policy) {
  list_phases();
  std::vector<int> first(kernel_.nodes.size(), -1), walks(kernel_.nodes.size(), 0);
  for (int phase = 0; phase < count(); ++phase) {
    for (const NodeIndex i : nodes(phase))
      if (walks[index(i)]++ == 0) first[index(i)] = phase;
  }
  int64_t space = policy.live_space;
  const auto consider = [&](NodeIndex i) {
    const Node& n = node(i);
    if (walks[index(i)] < 2) return;
    const NodeIndex replaced = policy.keeps_users && is_real(n) ? live_operand_of_alone(i) : -1;
    const int64_t size = policy.live_size(n, cost(i));
    if (replaced < 0 && (size == 0 || size > space)) return;
    live_since_[index(i)] = first[index(i)];
    if (replaced < 0)
      space -= size;
    else
      live_since_[index(replaced)] = -1;
  };
  for (const bool loads : {true, false}) {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i)
      if (policy.keeps_loads_first ? is_load(kernel_.nodes[i]) == loads : loads) consider(static_cast<NodeIndex>(i));
  }
}

// The live node that is the only element operand of a map and has no other reader: keeping the map live instead costs the same
// and saves a step. -1 if there is none.
NodeIndex LoopPlan::live_operand_of_alone(NodeIndex user) const {
  const Node& n = node(user);
  if (n.kind != NodeKind::map) return -1;
  NodeIndex only = -1;
  for (int k = 0; k < operand_count(n); ++k) {
    const NodeIndex operand = n.operands[static_cast<size_t>(k)];
    if (!node(operand).per_element) continue;
    if (only >= 0 || live_since(operand) < 0) return -1;
    only = operand;
  }
  const auto reads = [&](const Node& other) {
    return std::find(other.operands.begin(), other.operands.end(), only) != other.operands.end();
  };
  return only >= 0 && std::count_if(kernel_.nodes.begin(), kernel_.nodes.end(), reads) == 1 ? only : -1;
}

bool LoopPlan::may_be_skipped(int phase) const {
  return !roots(phase).empty() && std::all_of(roots(phase).begin(), roots(phase).end(), [&](NodeIndex i) {
    return node(i).kind == NodeKind::moments && loop_of(i) < phase;
  });
}

std::vector<int> LoopPlan::usual_walks() const {
  std::vector<int> walks;
  for (int p = 0; p < count(); ++p)
    if (!roots(p).empty() && !may_be_skipped(p)) walks.push_back(p);
  return walks;
}

bool LoopPlan::reduces(int phase) const {
  return std::any_of(roots(phase).begin(), roots(phase).end(), [&](NodeIndex i) { return reduces_rows(node(i)); });
}

bool LoopPlan::has_function(const NodeList& nodes) const {
  return std::any_of(nodes.begin(), nodes.end(), [&](NodeIndex i) { return cost_of(node(i)) == CostClass::function; });
}

}  // namespace lamina::kernel
