// Dequantize -> Concat -> Quantize becomes Concat of the integers, where all scales and zero points agree.
//
// (q - zp) * scale, divided by the same scale, is q - zp again but for two roundings, each of less than a unit in 2^23: far
// less than the half that Quantize rounds away, so the integer comes back. That is looked at for every integer of the type.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> move_integers(const Graph& graph);

}  // namespace lamina
