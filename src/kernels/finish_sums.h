// In:    sums that tiles have added to, in f32, maybe in several copies.
// Out:   a graph that adds the copies, in one order, and makes the results of them.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/graph.h"

namespace lamina::kernel {

struct SumToFinish {
  LogicalTensor sum;     // one copy, f32 and dense; of several the graph's input has them one after the other
  LogicalTensor result;  // of the same shape, in the type and with the strides that are asked for
  int64_t copies = 1;
};

// Inputs and outputs are in the order of `sums`.
Graph graph_that_finishes(const std::vector<SumToFinish>& sums);

// Whether both have the same elements at the same places, extents being equal.
bool lie_alike(const LogicalTensor& a, const LogicalTensor& b);

}  // namespace lamina::kernel
