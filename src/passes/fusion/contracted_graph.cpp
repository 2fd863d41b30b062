#include "passes/fusion/contracted_graph.h"

#include <algorithm>

namespace lamina {

ContractedGraph::ContractedGraph(const Graph& graph)
    : nodes_(graph.ops().size()), parent_(graph.ops().size()), visited_(graph.ops().size(), 0) {
  for (size_t i = 0; i < nodes_.size(); ++i) {
    const int op = static_cast<int>(i);
    parent_[i] = op;
    nodes_[i].order = op;
    for (const ValueIndex value : graph.ops()[i].inputs) {
      const int producer = value == kNoValue ? -1 : graph.value(value).producer.op;
      if (producer < 0) continue;
      nodes_[i].predecessors.push_back(producer);
      nodes_[static_cast<size_t>(producer)].successors.push_back(op);
    }
  }
}

int ContractedGraph::node_of(int op) const {
  int root = op;
  while (parent_[static_cast<size_t>(root)] != root) root = parent_[static_cast<size_t>(root)];
  while (op != root) {
    const int next = parent_[static_cast<size_t>(op)];
    parent_[static_cast<size_t>(op)] = root;
    op = next;
  }
  return root;
}

// The node's neighbours as nodes. Removes edges inside the node.
std::vector<int>& ContractedGraph::scanned(int node, bool forward) {
  Node& data = nodes_[static_cast<size_t>(node)];
  std::vector<int>& neighbours = forward ? data.successors : data.predecessors;
  for (int& neighbour : neighbours) neighbour = node_of(neighbour);
  std::erase(neighbours, node);
  return neighbours;
}

// Nodes between the two in the order that are reached from `from`, without counting a direct step to `to`. Returns false if
// there are too many. If `to` is reached that way, it is the last of `found`.
bool ContractedGraph::search(int from, int to, bool forward, std::vector<int>& found) {
  ++search_;
  const int bound = order(to);
  const auto inside = [&](int node) { return forward ? order(node) < bound : order(node) > bound; };
  std::vector<int> open{from};
  size_t scanned_edges = 0;
  while (!open.empty()) {
    const int node = open.back();
    open.pop_back();
    const std::vector<int>& neighbours = scanned(node, forward);
    if (node != from && (scanned_edges += neighbours.size()) > kSearchLimit) return false;
    for (const int next : neighbours) {
      if (next == to && node != from) {
        found.push_back(to);
        return true;
      }
      if (next == to || !inside(next) || visited_[static_cast<size_t>(next)] == search_) continue;
      visited_[static_cast<size_t>(next)] = search_;
      found.push_back(next);
      open.push_back(next);
      if (found.size() > kSearchLimit) return false;
    }
  }
  return true;
}

ContractedGraph::Verdict ContractedGraph::merge(int op_a, int op_b) {
  int early = node_of(op_a), late = node_of(op_b);
  if (early == late) return Verdict::merged;
  if (order(early) > order(late)) std::swap(early, late);
  const std::vector<int>& sources = scanned(late, false);
  if (std::all_of(sources.begin(), sources.end(), [early](int node) { return node == early; })) {
    // The later node depends only on the earlier one, so it moves there. This keeps a value with thousands of readers cheap.
    nodes_[static_cast<size_t>(late)].order = order(early);
    join_nodes(early, late);
    return Verdict::merged;
  }
  std::vector<int> after;
  if (!search(early, late, true, after)) return Verdict::too_far;
  if (!after.empty() && after.back() == late) return Verdict::would_cycle;
  if (after.empty()) {
    // No node between the two depends on the earlier one, so the merged node gets the later one's place.
    nodes_[static_cast<size_t>(early)].order = order(late);
  } else {
    std::vector<int> before;
    if (!search(late, early, false, before)) return Verdict::too_far;
    std::vector<int> places{order(early), order(late)};
    for (const auto* side : {&before, &after})
      for (const int node : *side) places.push_back(order(node));
    const auto by_order = [&](int a, int b) { return order(a) < order(b); };
    std::sort(before.begin(), before.end(), by_order);
    std::sort(after.begin(), after.end(), by_order);
    std::sort(places.begin(), places.end());
    size_t next = 0;
    for (const int node : before) nodes_[static_cast<size_t>(node)].order = places[next++];
    nodes_[static_cast<size_t>(early)].order = nodes_[static_cast<size_t>(late)].order = places[next++];
    for (const int node : after) nodes_[static_cast<size_t>(node)].order = places[next++];
  }
  join_nodes(early, late);
  return Verdict::merged;
}

void ContractedGraph::join_nodes(int kept, int joined) {
  const auto size = [&](int node) {
    return nodes_[static_cast<size_t>(node)].successors.size() + nodes_[static_cast<size_t>(node)].predecessors.size();
  };
  if (size(kept) < size(joined)) std::swap(kept, joined);
  Node& to = nodes_[static_cast<size_t>(kept)];
  Node& from = nodes_[static_cast<size_t>(joined)];
  to.successors.insert(to.successors.end(), from.successors.begin(), from.successors.end());
  to.predecessors.insert(to.predecessors.end(), from.predecessors.begin(), from.predecessors.end());
  from.successors = {};
  from.predecessors = {};
  parent_[static_cast<size_t>(joined)] = kept;
}

}  // namespace lamina
