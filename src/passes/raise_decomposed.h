// Ops that are written out in small ops become ops again, as patterns/ says.
//
// In:    a canonical graph.
// Out:   the same values at its inputs and outputs; LayerNorm, RMSNorm, SoftMax, LogSoftmax, GELU and Swish as one op each. The
//        raised op has the id and the name of the op that made its result, and lists the others as origins. An op at which the
//        search for a pattern was given up says so (Op::given_up).
// Keeps: every value that someone else reads or that is a graph output: where one of them lies inside, nothing is raised. An
//        input that is compiled in (an epsilon, a count) is no input of the graph any more.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> raise_decomposed(const Graph& graph);  // nothing: there is nothing to raise
// With another limit on each search for a pattern than pattern::kMaxSteps.
std::optional<Graph> raise_decomposed(const Graph& graph, int max_steps);

}  // namespace lamina
