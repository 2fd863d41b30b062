// Older kinds become today's, and ops that change nothing are dropped.
//
// In:    a finalized graph.
// Out:   the same values at the graph's inputs and outputs; no LayerNormBackprop, no LayerNormGrad; scales that a grouped
//        ConvTranspose has per group stand along the axis of its input channels.
// Keeps: every tensor id that a user can ask for. An op that changes nothing but makes a graph output stays: somebody has to
//        write that tensor.
#pragma once

#include "interface/graph.h"

namespace lamina {

Graph canonicalize(const Graph& graph);

}  // namespace lamina
