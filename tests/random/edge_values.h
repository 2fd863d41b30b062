// Values that show how a number is rounded, put among the data of random graphs.
#pragma once

#include "interface/graph.h"
#include "lamina/buffer.h"

namespace lamina::testing {

// If a cast reads graph input `input`, an eighth of its elements become values beside or on the middle between two neighbours
// of a narrower type; integers that only casts read become large. Inputs whose readers need other values stay as they are.
void add_edge_values(const Graph& graph, ValueIndex input, uint64_t seed, driver::Buffer& buffer);

}  // namespace lamina::testing
