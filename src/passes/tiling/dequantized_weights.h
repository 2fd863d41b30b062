// Matrix products whose weights are integers of 4 or 8 bits, dequantised in groups. Their first factor is of floats, or also of
// integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "interface/graph.h"
#include "passes/tiling/quantized_rows.h"

namespace lamina {

// The second factor of a product: (value - zero point) * scale in f32.
struct DequantizedWeights {
  ValueIndex value = kNoValue;                                   // a matrix of s4, u4, s8 or u8
  ValueIndex scales = kNoValue, zero_points = kNoValue;          // tensors, if the op has them as inputs
  std::vector<float> given_scales = {}, given_zero_points = {};  // else those of its attributes
  int64_t group_rows = 1, group_columns = 1;                     // entries of k, and columns of the product, that share a scale
  DataType rounds_to = DataType::f32;                            // bf16 or f16 if an op rounds the dequantised weights
  std::vector<int> ops = {};  // the Dequantize, and a TypeCast or StaticReshape after it; no other op reads their results
  // The shape in which the product reads integers whose axes are divided into groups; else empty.
  Dims matrix = {};
  std::optional<QuantizedRows> rows = std::nullopt;  // the first factor, if the product multiplies the integers of both

  // Scales and zero points that are tensors: those of the weights, then those of the rows.
  std::vector<ValueIndex> operands() const;
  size_t operands_of_weights() const { return static_cast<size_t>((scales != kNoValue) + (zero_points != kNoValue)); }
};

// Nothing if the weights of `product` are not such, or are not one matrix with a known shape.
std::optional<DequantizedWeights> dequantized_weights(const Graph& graph, const Op& product);

// The Dequantize or DynamicDequantize that makes a value, through a TypeCast or StaticReshape, if no other op reads it; null if
// there is none. `ops`: these ops.
const Op* dequantize_of(const Graph& graph, ValueIndex value, std::vector<int>& ops);

// The entries along each axis of the integers that share a scale.
Dims group_of_scales(const Op& op, const Dims& shape);

// The same elements with the axes of this shape, each of which is one axis of the tensor or several successive ones. Nothing if
// strides do not allow it.
std::optional<LogicalTensor> with_joined_axes(const LogicalTensor& tensor, const Dims& shape);

}  // namespace lamina
