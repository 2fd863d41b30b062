// Which groups become one partition because library ops connect them.
//
// In:    a graph, and its fusion groups in an order in which they can run.
// Out:   groups for partitions. Connected groups that contain an op of class library become one group, which has only the ops
//        and reasons of a fusion group. All other groups do not change.
// Keeps: convexity: no path leaves a joined group and returns to it. The time is linear in the size of the graph.
#pragma once

#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina {

std::vector<FusionGroup> join_around_library_ops(const Graph& graph, std::vector<FusionGroup> groups);

}  // namespace lamina
