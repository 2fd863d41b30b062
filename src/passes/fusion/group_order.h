// The order in which groups of ops can run.
#pragma once

#include <vector>

#include "interface/graph.h"

namespace lamina {

// `group_of` maps each op to its group, 0..group_count-1. Returns the groups in topological order; among groups that are
// ready, the one with the earliest first op comes first. The result is shorter than group_count if groups form a cycle.
std::vector<int> order_groups(const Graph& graph, const std::vector<int>& group_of, int group_count);

}  // namespace lamina
