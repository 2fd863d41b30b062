// Adds values that reveal rounding errors to the inputs of random graphs.
#pragma once

#include "interface/graph.h"
#include "lamina/buffer.h"

namespace lamina::testing {

// If a cast reads the graph input `input`, an eighth of its elements become values at or near the middle between two neighbours
// of a narrower type. Integers that only casts read become large. Inputs whose consumers restrict the values do not change.
void add_edge_values(const Graph& graph, ValueIndex input, uint64_t seed, driver::Buffer& buffer);

}  // namespace lamina::testing
