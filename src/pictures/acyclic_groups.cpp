#include "pictures/acyclic_groups.h"

#include <map>

namespace lamina::pictures {
namespace {

using Neighbours = std::vector<std::vector<size_t>>;

// Numbers from 0 in the order in which they appear.
std::vector<size_t> renumbered(const std::vector<size_t>& groups) {
  std::map<size_t, size_t> number;
  std::vector<size_t> result;
  for (const size_t group : groups) result.push_back(number.try_emplace(group, number.size()).first->second);
  return result;
}

// Visits what can be reached from `start` and was not seen before; calls `left` on each node after its successors.
template <typename Left>
void walk(size_t start, const Neighbours& next, std::vector<bool>& seen, const Left& left) {
  struct Step {
    size_t node, edge;
  };
  std::vector<Step> open;
  const auto enter = [&](size_t node) {
    if (seen[node]) return;
    seen[node] = true;
    open.push_back({node, 0});
  };
  enter(start);
  while (!open.empty()) {
    Step& step = open.back();
    if (step.edge < next[step.node].size()) {
      enter(next[step.node][step.edge++]);
    } else {
      const size_t node = step.node;
      open.pop_back();
      left(node);
    }
  }
}

}  // namespace

// Kosaraju: what a node reaches against the edges, in the reverse order of leaving, is strongly connected.
std::vector<size_t> acyclic_groups(const std::vector<size_t>& groups, const std::vector<Edge>& edges) {
  const std::vector<size_t> group = renumbered(groups);
  Neighbours next(group.size()), previous(group.size());
  for (const Edge& edge : edges) {
    next[group[edge.from]].push_back(group[edge.to]);
    previous[group[edge.to]].push_back(group[edge.from]);
  }
  std::vector<size_t> order, component(group.size());
  std::vector<bool> seen(group.size()), taken(group.size());
  for (size_t start = 0; start < group.size(); ++start) walk(start, next, seen, [&](size_t node) { order.push_back(node); });
  for (auto start = order.rbegin(); start != order.rend(); ++start)
    walk(*start, previous, taken, [&](size_t node) { component[node] = *start; });
  std::vector<size_t> result;
  for (const size_t each : group) result.push_back(component[each]);
  return renumbered(result);
}

}  // namespace lamina::pictures
