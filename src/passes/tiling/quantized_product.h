// Matrix products of integers: both factors dequantised by factors that can be taken out of the sum.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// A factor as it was before it was dequantised: real = scale * (value - zero_point).
struct QuantizedFactor {
  ValueIndex value = kNoValue;  // u8 or s8
  std::vector<float> scales;    // one; or, of the second factor, one per column of the product
  int64_t zero_point = 0;
  std::vector<int> ops;  // the Dequantize, and a TypeCast behind it, which nobody else reads
};

struct QuantizedProduct {
  QuantizedFactor src, weights;
};

// Nothing when `product` is no such product: a factor that is not made by Dequantize alone, or that somebody else reads too,
// scales along another axis, weights that are not s8 or have zero points, a bias in 16 bits.
std::optional<QuantizedProduct> quantized_product(const Graph& graph, const Op& product);

}  // namespace lamina
