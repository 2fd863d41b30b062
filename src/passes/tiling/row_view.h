// How an op can be cut into independent rows.
#pragma once

#include "interface/graph.h"
#include "passes/fusion/iteration_view.h"

namespace lamina {

// The op's iteration view, in which `inner` means that rows cannot be cut along this dim. A matrix product, which has no loop
// nest, is viewed as one over its batch dims, rows, columns and summed dim; the last two are inner.
IterationView row_view(const Graph& graph, const Op& op);

bool is_matrix_product(const Op& op);

// The axis along which the op's elements are their positions (0, 1, 2, ...); -1 for other ops.
int axis_of_positions(const Graph& graph, const Op& op);

}  // namespace lamina
