// The first factor of a matrix product in rows of integers of 8 bits, whose second factor is a QuantizedMatrix: the product
// multiplies the integers. k is divided into parts (part_of_group), each of which belongs to one group of the weights. For each
// element
//
//   sum = fma(f32(sum over the part of (src - its zero point) * (weights - their zero point)), scale of the weights, sum)
//
// part after part, where the inner sum is exact; then
//
//   dst = sum * scale of the row + bias
//
// Dequantising first would round each factor, and each product in a sum of f32: this is closer to the exact result.
#pragma once

#include <cstdint>

#include "interface/data_type.h"
#include "kernels/contraction.h"
#include "kernels/quantized_matrix.h"

namespace lamina::kernel {

struct LibraryStep;

struct IntegerRows {
  DataType dtype = DataType::s8;  // or u8
  int64_t row_stride = 0;         // elements; the entries of a row are contiguous
  DataType scales = DataType::f32, zero_points = DataType::s8;
  int64_t scale_stride = 0, zero_point_stride = 0;  // from row to row; 0: one for all rows
  bool has_zero_points = false;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.dtype), visit(self.row_stride), visit(self.scales), visit(self.zero_points), visit(self.scale_stride);
    visit(self.zero_point_stride), visit(self.has_zero_points);
  }
};

// The entries of k in each part.
int64_t part_of_group(const QuantizedMatrix& weights);

// Of a step with rows in LibraryStep::dequantized. A scale and a zero point from attributes are f32 and s32.
IntegerRows integer_rows(const LibraryStep& step);

struct IntegerRowsMemory {
  const void *values, *scales, *zero_points;  // null if there are none
};

// The product as it is defined. `contraction`: dequantized_contraction_of. `bias` may be null.
void interpret(const Contraction& contraction, const IntegerRows& rows, const IntegerRowsMemory& rows_memory,
               const QuantizedMatrix& weights, const QuantizedMemory& weights_memory, const void* bias, void* dst);

}  // namespace lamina::kernel
