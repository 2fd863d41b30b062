// The order in which groups of ops can run.
#pragma once

#include <vector>

#include "interface/graph.h"

namespace lamina {

// `group_of` gives each op its group, 0..group_count-1. Returns the groups topologically ordered, earliest first op first
// among those that are ready; shorter than group_count when groups wait for each other in a circle.
std::vector<int> order_groups(const Graph& graph, const std::vector<int>& group_of, int group_count);

}  // namespace lamina
