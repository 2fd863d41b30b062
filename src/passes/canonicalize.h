// Replaces older op kinds by the current ones, and drops ops that change nothing.
//
// In:    a finalized graph.
// Out:   the same values at the graph's inputs and outputs; no LayerNormBackprop and no LayerNormGrad. Per-group scales of a
//        grouped ConvTranspose are along the axis of its input channels. Axes and orders of axes are attributes wherever they
//        are known.
// Keeps: every tensor id that a user can query. An op that changes nothing but writes a graph output stays. The ids of
//        dropped ops stay with the first op that reads their value (Op::origins).
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> canonicalize(const Graph& graph);  // nothing if the graph is canonical

}  // namespace lamina
