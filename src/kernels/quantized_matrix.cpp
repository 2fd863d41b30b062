#include "kernels/quantized_matrix.h"

#include "interface/status.h"
#include "kernels/matmul_stack.h"
#include "kernels/plan.h"

namespace lamina::kernel {

namespace {

// Scales or zero points in a tensor: a single one, one per row or column, or one per group with the axes of the weights.
MatrixStack groups_in(const LogicalTensor& tensor, const QuantizedMatrix& matrix, bool transposed) {
  MatrixStack groups{
      matrix.values.rows / matrix.group_rows, matrix.values.columns / matrix.group_columns, 0, 0, {}, tensor.dtype};
  if (tensor.element_count() == 1) return groups;
  if (tensor.rank() == 1) {
    (groups.rows == 1 ? groups.column_stride : groups.row_stride) = tensor.strides[0];
    return groups;
  }
  if (groups.rows > 1) groups.row_stride = tensor.strides[transposed ? 1 : 0];
  if (groups.columns > 1) groups.column_stride = tensor.strides[transposed ? 0 : 1];
  return groups;
}

LogicalTensor tensor_of(const std::vector<float>& given) {
  LogicalTensor tensor;
  tensor.dtype = DataType::f32;
  tensor.shape = Dims{static_cast<int64_t>(given.size())};
  tensor.strides = {1};
  return tensor;
}

void read_as_matrices(LibraryStep& step) {
  const DequantizedWeights& weights = *step.dequantized;
  const size_t rows = step.op.attribute<bool>("transpose_b") ? 1 : 0;
  Dims groups = weights.matrix;
  groups[rows] /= weights.group_rows, groups[1 - rows] /= weights.group_columns;
  step.inputs[1] = *with_joined_axes(step.inputs[1], weights.matrix);
  for (size_t i = 0; i < weights.operands_of_weights(); ++i) step.operands[i] = *with_joined_axes(step.operands[i], groups);
}

// Scales and zero points have one axis, which is that of the rows.
void read_as_rows(LibraryStep& step) {
  const QuantizedRows& rows = *step.dequantized->rows;
  step.inputs[0] = *with_rows_of(step.inputs[0], rows.shape);
  int64_t count = 1;
  for (size_t axis = 0; axis + 1 < rows.shape.size(); ++axis) count *= rows.shape[axis];
  if (rows.has_one_scale) count = 1;
  for (size_t i = step.dequantized->operands_of_weights(); i < step.operands.size(); ++i)
    step.operands[i] = *with_joined_axes(step.operands[i], {count});
}

}  // namespace

void read_factors(LibraryStep& step) {
  if (!step.dequantized->matrix.empty()) read_as_matrices(step);
  if (step.dequantized->rows) read_as_rows(step);
}

QuantizedMatrix quantized_matrix(const LibraryStep& step) {
  LAMINA_CHECK(step.dequantized.has_value(), describe(step.op));
  const DequantizedWeights& weights = *step.dequantized;
  const bool transposed = step.op.attribute<bool>("transpose_b");
  QuantizedMatrix matrix;
  matrix.values = matmul_stack(step).weights;
  matrix.group_rows = weights.group_rows, matrix.group_columns = weights.group_columns;
  matrix.rounds_to = weights.rounds_to;
  size_t operand = 0;
  const auto groups = [&](ValueIndex value, const std::vector<float>& given) {
    return groups_in(value == kNoValue ? tensor_of(given) : step.operands[operand++], matrix, transposed);
  };
  matrix.scales = groups(weights.scales, weights.given_scales);
  if (weights.zero_points != kNoValue || !weights.given_zero_points.empty())
    matrix.zero_points = groups(weights.zero_points, weights.given_zero_points);
  return matrix;
}

std::string print(const QuantizedMatrix& matrix) {
  return join(name_of(matrix.values.dtype), " in groups of ", matrix.group_rows, " x ", matrix.group_columns, ", scales ",
              name_of(matrix.scales.dtype),
              matrix.zero_points ? join(", zero points ", name_of(matrix.zero_points->dtype)) : "",
              matrix.rounds_to == DataType::f32 ? "" : join(", rounded to ", name_of(matrix.rounds_to)));
}

std::vector<float> dequantized(const QuantizedMatrix& matrix, const QuantizedMemory& memory) {
  const int64_t rows = matrix.values.rows, columns = matrix.values.columns;
  std::vector<float> weights(static_cast<size_t>(rows * columns));
  const auto element = [](const MatrixStack& stack, const void* data, int64_t row, int64_t column) {
    return static_cast<float>(load_as_double(stack.dtype, data, row * stack.row_stride + column * stack.column_stride));
  };
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < columns; ++column) {
      const int64_t group = row / matrix.group_rows, of_columns = column / matrix.group_columns;
      float weight = element(matrix.values, memory.values, row, column);
      if (matrix.zero_points) weight -= element(*matrix.zero_points, memory.zero_points, group, of_columns);
      weight *= element(matrix.scales, memory.scales, group, of_columns);
      uint32_t rounded = 0;
      store_from_double(matrix.rounds_to, &rounded, 0, double{weight});
      weights[static_cast<size_t>(row * columns + column)] = static_cast<float>(load_as_double(matrix.rounds_to, &rounded, 0));
    }
  }
  return weights;
}

}  // namespace lamina::kernel
