// In:    fusion groups in an order in which they can run, and the library that may compute products from integers, or null.
// Out:   the same groups, but the ops that dequantise a factor of such a product, or weights that the library dequantises, are
// a separate group, which the product can omit:
//
//   {SoftMax, Quantize, Dequantize, TypeCast} ── MatMul   ==>   {SoftMax, Quantize} ── {Dequantize, TypeCast} ── MatMul
// Keeps: every op in one group, and the order.
#pragma once

#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/quantized_product.h"

namespace lamina {

std::vector<FusionGroup> isolate_dequantize(const Graph& graph, std::vector<FusionGroup> groups,
                                            const LibraryCapabilities* library);

}  // namespace lamina
