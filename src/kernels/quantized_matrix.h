// The second factor of a matrix product in integers of 4 or 8 bits, with scales and zero points for groups of them:
//   weight = (value - zero point) * scale       in f32, then rounded to bf16 or f16 if the graph does so
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "kernels/matrix_stack.h"

namespace lamina::kernel {

struct LibraryStep;

struct QuantizedMatrix {
  MatrixStack values;                      // k rows
  MatrixStack scales;                      // one entry per group; strides are 0 where there is one group
  std::optional<MatrixStack> zero_points;  // likewise
  int64_t group_rows = 1, group_columns = 1;
  DataType rounds_to = DataType::f32;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.values), visit(self.scales), visit(self.zero_points), visit(self.group_rows), visit(self.group_columns);
    visit(self.rounds_to);
  }
};

// Gives the tensors of a step with LibraryStep::dequantized the shapes in which the product reads them
// (DequantizedWeights::matrix, QuantizedRows::shape).
void read_factors(LibraryStep& step);

// Of a step with LibraryStep::dequantized. Scales and zero points from attributes are f32 and contiguous.
QuantizedMatrix quantized_matrix(const LibraryStep& step);

// "s4 in groups of 32 x 1, scales f32, zero points s4, rounded to bf16". Without strides.
std::string print(const QuantizedMatrix& matrix);

struct QuantizedMemory {
  const void *values, *scales, *zero_points;  // null if there are none
};

// The weights, row after row.
std::vector<float> dequantized(const QuantizedMatrix& matrix, const QuantizedMemory& memory);

}  // namespace lamina::kernel
