// Older kinds become today's, and ops that change nothing are dropped.
//
// In:    a finalized graph.
// Out:   the same values at the graph's inputs and outputs; no LayerNormBackprop, no LayerNormGrad; scales that a grouped
//        ConvTranspose has per group stand along the axis of its input channels; axes and orders of axes are attributes
//        wherever they are known.
// Keeps: every tensor id that a user can ask for. An op that changes nothing but makes a graph output stays: somebody has to
//        write that tensor. The ids of ops that go stay with the first op that reads their value (Op::origins).
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> canonicalize(const Graph& graph);  // nothing: the graph is canonical

}  // namespace lamina
