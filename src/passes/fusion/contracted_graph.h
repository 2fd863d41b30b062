// The graph with fused ops drawn together into one node each, kept free of cycles.
//
// A group must be convex, and the groups among themselves must have an order too: two groups can each be convex and still
// wait for each other. Both follow when the contracted graph has no cycle, so that is what merge() keeps true. It holds a
// topological order of the nodes and repairs it locally: a merge looks only at nodes between the two in that order that the
// earlier one reaches, and at no more than kSearchLimit of them.
#pragma once

#include <vector>

#include "interface/graph.h"

namespace lamina {

class ContractedGraph {
 public:
  explicit ContractedGraph(const Graph& graph);

  enum class Verdict { merged, would_cycle, too_far };
  static constexpr size_t kSearchLimit = 4096;

  // Draws the nodes of two ops together, unless another node lies on a path between them.
  Verdict merge(int op_a, int op_b);

  int node_of(int op) const;  // the representative op of the op's node

 private:
  struct Node {
    std::vector<int> successors, predecessors;  // ops; may name ops of the node itself until it is scanned
    int order = 0;
  };

  std::vector<int>& scanned(int node, bool forward);
  bool search(int from, int to, bool forward, std::vector<int>& found);
  void join_nodes(int kept, int joined);
  int order(int node) const { return nodes_[static_cast<size_t>(node)].order; }

  std::vector<Node> nodes_;          // by representative op
  mutable std::vector<int> parent_;  // union-find
  std::vector<int> visited_;         // search that saw the node last
  int search_ = 0;
};

}  // namespace lamina
