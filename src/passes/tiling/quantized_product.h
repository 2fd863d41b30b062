// Matrix products and convolutions of integers. The dequantisation of both factors can be moved out of the sum.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interface/graph.h"
#include "passes/core/capabilities.h"

namespace lamina {

// A factor before its dequantisation: real = scale * (value - zero_point).
struct QuantizedFactor {
  ValueIndex value = kNoValue;  // u8 or s8
  std::vector<float> scales;    // one; or, for the second factor, one per column (or channel) of the product
  int64_t zero_point = 0;
  std::vector<int> ops;  // the Dequantize, and a TypeCast after it; no other op reads their results
};

struct QuantizedProduct {
  QuantizedFactor src, weights;
};

// Nothing if `product` is not such a product: a factor is not the result of Dequantize or has other readers; scales vary
// along another axis; weights of a convolution are not s8 or have zero points; or libraries do not support the type of the
// bias or the result.
std::optional<QuantizedProduct> quantized_product(const Graph& graph, const Op& product);

// Dequantize in both forms, and the TypeCast that may follow it.
bool dequantises_or_casts(const Op& op);

}  // namespace lamina
