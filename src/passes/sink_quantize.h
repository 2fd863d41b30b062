// Quantises the parts of a concatenation, instead of its result:
//
//   a ──┐                                   a ── Quantize ──┐
//       Concat ── Quantize      ==>                         Concat
//   q ── Dequantize ──┘                     q ──────────────┘
//
// A Quantize joins the loop nest that makes the part, and the concatenation is in memory with one byte for an element. A part
// that was dequantised with the same scale and zero point is joined as it is: (q - zp) * scale, divided by the same scale,
// equals q - zp up to two roundings, each of less than a unit in 2^23. Quantize rounds away errors below one half, so the
// integer comes back. The pass checks this for every integer of the type.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> sink_quantize(const Graph& graph);

}  // namespace lamina
