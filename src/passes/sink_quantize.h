// Replaces Dequantize -> Concat -> Quantize by a Concat of the integers, if all scales and zero points agree.
//
// (q - zp) * scale, divided by the same scale, equals q - zp up to two roundings, each of less than a unit in 2^23. Quantize
// rounds away errors below one half, so the integer comes back. The pass checks this for every integer of the type.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> sink_quantize(const Graph& graph);

}  // namespace lamina
