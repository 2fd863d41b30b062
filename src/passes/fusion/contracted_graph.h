// The graph with each set of fused ops merged into one node, kept free of cycles.
//
// Every group must be convex, and the groups must have an order: two groups can each be convex and still depend on each
// other. Both hold if the contracted graph has no cycle, which merge() preserves. It keeps a topological order of the nodes
// and repairs it locally: a merge visits only nodes between the two in that order that the earlier one reaches, and at most
// kSearchLimit of them.
#pragma once

#include <vector>

#include "interface/graph.h"

namespace lamina {

class ContractedGraph {
 public:
  explicit ContractedGraph(const Graph& graph);

  enum class Verdict { merged, would_cycle, too_far };
  static constexpr size_t kSearchLimit = 4096;

  // Merges the nodes of two ops, unless another node is on a path between them.
  Verdict merge(int op_a, int op_b);

  int node_of(int op) const;  // the representative op of the op's node

 private:
  struct Node {
    std::vector<int> successors, predecessors;  // ops; may contain ops of the node itself until it is scanned
    int order = 0;
  };

  std::vector<int>& scanned(int node, bool forward);
  bool search(int from, int to, bool forward, std::vector<int>& found);
  void join_nodes(int kept, int joined);
  int order(int node) const { return nodes_[static_cast<size_t>(node)].order; }

  std::vector<Node> nodes_;          // by representative op
  mutable std::vector<int> parent_;  // union-find
  std::vector<int> visited_;         // per node: the last search that visited it
  int search_ = 0;
};

}  // namespace lamina
