// Gives each matrix product and convolution its own Dequantize, with the TypeCast that may follow it:
//
//   q ── Dequantize ─┬─ Convolution   ==>   q ─┬─ Dequantize ── Convolution
//                    └─ Add                    └─ Dequantize ── Add
//
// So such an op can multiply the integers (passes/tiling/quantized_product.h), also if other ops read the numbers.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> repeat_dequantize(const Graph& graph);

}  // namespace lamina
