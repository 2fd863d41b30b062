// How an op can be cut into rows that do not see each other.
#pragma once

#include "interface/graph.h"
#include "passes/fusion/iteration_view.h"

namespace lamina {

// As its iteration view, where `inner` means: rows cannot be cut along this dim. A matrix product, which has no loop nest, is
// seen as one over its batch dims, rows, columns and the dim that it sums over, of which the last two are inner, in this order.
IterationView row_view(const Graph& graph, const Op& op);

bool is_matrix_product(const Op& op);

// Whether the op's elements are their positions along an axis, and which: -1 for any other op.
int axis_of_positions(const Graph& graph, const Op& op);

}  // namespace lamina
