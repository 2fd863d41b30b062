// Replaces formulas of small ops by one op each. patterns/ defines the formulas.
//
// In:    a canonical graph.
// Out:   the same values at its inputs and outputs; LayerNorm, RMSNorm, SoftMax, LogSoftmax, GELU and Swish as one op each. A
//        raised op has the id and the name of the op that computed its result, and lists the others as origins. Op::given_up
//        marks an op at which the search for a pattern stopped early.
// Keeps: every value that an op outside reads or that is a graph output: a match with such an inner value is not raised. A
//        constant that becomes an attribute (an epsilon, a count) is no longer an input of the graph.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> raise_decomposed(const Graph& graph);  // nothing if there is nothing to raise
// Uses another limit on each search than pattern::kMaxSteps.
std::optional<Graph> raise_decomposed(const Graph& graph, int max_steps);

}  // namespace lamina
