#include "kernels/integer_rows.h"

#include <cmath>

#include "interface/status.h"
#include "kernels/plan.h"
#include "passes/tiling/quantized_rows.h"

namespace lamina::kernel {

IntegerRows integer_rows(const LibraryStep& step) {
  LAMINA_CHECK(step.dequantized && step.dequantized->rows, describe(step.op));
  const QuantizedRows& rows = *step.dequantized->rows;
  const LogicalTensor& values = step.inputs[0];
  IntegerRows integers{.dtype = values.dtype, .row_stride = values.strides[static_cast<size_t>(values.rank()) - 2]};
  size_t operand = step.dequantized->operands_of_weights();
  const auto stride_of = [&](const LogicalTensor& tensor) { return rows.has_one_scale ? 0 : tensor.strides[0]; };
  if (rows.scales != kNoValue) {
    const LogicalTensor& scales = step.operands[operand++];
    integers.scales = scales.dtype, integers.scale_stride = stride_of(scales);
  }
  if (rows.zero_points != kNoValue) {
    const LogicalTensor& zero_points = step.operands[operand];
    integers.zero_points = zero_points.dtype, integers.zero_point_stride = stride_of(zero_points);
  } else {
    integers.zero_points = DataType::s32;
  }
  integers.has_zero_points = rows.zero_points != kNoValue || rows.given_zero_point != 0;
  return integers;
}

int64_t part_of_group(const QuantizedMatrix& weights) { return lamina::part_of_group(weights.group_rows); }

namespace {

double number_at(const MatrixStack& stack, const void* memory, int64_t row, int64_t column) {
  return load_as_double(stack.dtype, memory, row * stack.row_stride + column * stack.column_stride);
}

struct Factors {
  const IntegerRows& rows;
  const IntegerRowsMemory& rows_memory;
  const QuantizedMatrix& weights;
  const QuantizedMemory& weights_memory;

  double row_entry(int64_t row, int64_t k) const {
    const double value = load_as_double(rows.dtype, rows_memory.values, row * rows.row_stride + k);
    if (!rows.has_zero_points) return value;
    return value - load_as_double(rows.zero_points, rows_memory.zero_points, row * rows.zero_point_stride);
  }
  double weight(int64_t k, int64_t column) const {
    const double value = number_at(weights.values, weights_memory.values, k, column);
    if (!weights.zero_points) return value;
    return value -
           number_at(*weights.zero_points, weights_memory.zero_points, k / weights.group_rows, column / weights.group_columns);
  }
  float sum(int64_t row, int64_t column, int64_t k) const {
    const int64_t part = part_of_group(weights);
    float sum = 0;
    for (int64_t first = 0; first < k; first += part) {
      double exact = 0;
      for (int64_t at = first; at < first + part; ++at) exact += row_entry(row, at) * weight(at, column);
      const double scale =
          number_at(weights.scales, weights_memory.scales, first / weights.group_rows, column / weights.group_columns);
      sum = std::fma(static_cast<float>(exact), static_cast<float>(scale), sum);
    }
    return sum * static_cast<float>(load_as_double(rows.scales, rows_memory.scales, row * rows.scale_stride));
  }
};

}  // namespace

void interpret(const Contraction& contraction, const IntegerRows& rows, const IntegerRowsMemory& rows_memory,
               const QuantizedMatrix& weights, const QuantizedMemory& weights_memory, const void* bias, void* dst) {
  const MatmulStack& stack = contraction.matrices;
  LAMINA_CHECK(stack.products() == 1, print(contraction));
  const Factors factors{rows, rows_memory, weights, weights_memory};
  for (int64_t row = 0; row < stack.m; ++row) {
    for (int64_t column = 0; column < stack.n; ++column) {
      float sum = factors.sum(row, column, stack.k);
      if (stack.has_bias) sum += static_cast<float>(number_at(stack.bias, bias, row, column));
      store_from_double(stack.dst.dtype, dst, row * stack.dst.row_stride + column * stack.dst.column_stride, double{sum});
    }
  }
}

}  // namespace lamina::kernel
