// In:    sums to which tiles have added in f32, possibly in several copies.
// Out:   a graph that adds the copies in a fixed order and converts the sums to the results.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/graph.h"

namespace lamina::kernel {

struct SumToFinish {
  LogicalTensor sum;     // one copy, f32 and dense; the graph's input contains all copies, one after the other
  LogicalTensor result;  // has the same shape, and the requested type and strides
  int64_t copies = 1;
};

// Inputs and outputs are in the order of `sums`.
Graph graph_that_finishes(const std::vector<SumToFinish>& sums);

// Whether both tensors have the same layout. Their extents must be equal.
bool have_same_layout(const LogicalTensor& a, const LogicalTensor& b);

}  // namespace lamina::kernel
