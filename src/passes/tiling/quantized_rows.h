// The first factor of a matrix product in integers of 8 bits, with a scale per row or one for all.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "interface/graph.h"

namespace lamina {

// real = (value - zero point) * scale
struct QuantizedRows {
  ValueIndex value = kNoValue;                           // u8 or s8; the entries of a row are contiguous
  ValueIndex scales = kNoValue, zero_points = kNoValue;  // tensors, if the op has them as inputs
  float given_scale = 1;                                 // else those of its attributes
  int64_t given_zero_point = 0;
  bool has_one_scale = false;
  Dims shape = {};            // in which the product reads the value
  std::vector<int> ops = {};  // the Dequantize, and a TypeCast or StaticReshape after it; no other op reads their results
};

// The entries of k whose products with weights of a group of this size are added as integers, before the sum is scaled: the
// whole group, or if that is longer than 256 its largest divisor of at most 256 that is a multiple of 8. 0 if there is none, or
// if the group has less than 8: fewer products do not pay for the scaling.
int64_t part_of_group(int64_t group);

// Nothing if the first factor of `product` is not such.
std::optional<QuantizedRows> quantized_rows(const Graph& graph, const Op& product);

// The tensor with its rows along the axes of `shape`, which has the same last extent. Nothing if its strides do not allow it.
std::optional<LogicalTensor> with_rows_of(const LogicalTensor& tensor, const Dims& shape);

}  // namespace lamina
