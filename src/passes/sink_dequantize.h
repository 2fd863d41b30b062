// Moves a Dequantize behind a MaxPool:
//
//   q ── Dequantize ── MaxPool    ==>    q ── MaxPool ── Dequantize
//
// Its scale is positive, so it keeps the order of numbers, and the largest one is that of the largest integer. The pool reads
// one byte for an element, and fewer elements are dequantised.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> sink_dequantize(const Graph& graph);

}  // namespace lamina
