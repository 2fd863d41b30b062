// Which groups become one partition because heavy ops stand between them.
//
// In:    a graph, and its fusion groups in an order in which they can run.
// Out:   groups for partitions: those that lead to each other and hold an op of class library are one, with the ops and
//        reasons of all of them and nothing else of a fusion group; all others stay what they are.
// Keeps: convexity: no path leaves a joined group and comes back. Linear in the graph.
#pragma once

#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina {

std::vector<FusionGroup> join_around_heavy_ops(const Graph& graph, std::vector<FusionGroup> groups);

}  // namespace lamina
