// Groups of nodes that can be drawn as boxes in layers.
#pragma once

#include <cstddef>
#include <vector>

#include "pictures/layered_layout.h"

namespace lamina::pictures {

// In:    a group for each node, and edges between nodes.
// Out:   groups numbered in the order of their first nodes. Groups that reach each other are one group.
// Keeps: nodes of one group stay together, and the edges between the groups of the result have no cycle.
std::vector<size_t> acyclic_groups(const std::vector<size_t>& groups, const std::vector<Edge>& edges);

}  // namespace lamina::pictures
