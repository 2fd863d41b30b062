// In:    fusion groups in an order in which they can run, and which products are taken as integers.
// Out:   the same, but what dequantises a factor of such a product is a group of its own, which the product can leave out:
//
//   {SoftMax, Quantize, Dequantize, TypeCast} ── MatMul   ==>   {SoftMax, Quantize} ── {Dequantize, TypeCast} ── MatMul
// Keeps: every op in one group, and the order.
#pragma once

#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/quantized_product.h"

namespace lamina {

std::vector<FusionGroup> with_factors_apart(const Graph& graph, std::vector<FusionGroup> groups,
                                            const IntegerSupport& integers);

}  // namespace lamina
