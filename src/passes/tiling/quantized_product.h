// Matrix products and convolutions of integers: both factors dequantised by factors that can be taken out of the sum.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// A factor as it was before it was dequantised: real = scale * (value - zero_point).
struct QuantizedFactor {
  ValueIndex value = kNoValue;  // u8 or s8
  std::vector<float> scales;    // one; or, of the second factor, one per column (or channel) of the product
  int64_t zero_point = 0;
  std::vector<int> ops;  // the Dequantize, and a TypeCast behind it, which nobody else reads
};

struct QuantizedProduct {
  QuantizedFactor src, weights;
};

// What a backend multiplies as integers, asked where there is a case of it. Null: it does not.
struct IntegerSupport {
  std::function<bool()> multiplies, convolves;
};

// Nothing when `product` is no such product: a factor that is not made by Dequantize alone, or that somebody else reads too,
// scales along another axis, weights of a convolution that are not s8 or have zero points, a bias or a result in a type that
// libraries do not take there.
std::optional<QuantizedProduct> quantized_product(const Graph& graph, const Op& product);

// Dequantize in both forms, and the TypeCast that may stand behind one.
bool dequantises_or_casts(const Op& op);

// Whether products of this kind are taken as integers. Asks only where `product` is one.
bool are_taken(const IntegerSupport& support, const Op& product);

}  // namespace lamina
