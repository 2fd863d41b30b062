#include "passes/tiling/quantized_rows.h"

#include <algorithm>
#include <cstddef>

#include "interface/op_schema.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

int64_t rows_of(const Dims& shape) {
  int64_t rows = 1;
  for (size_t axis = 0; axis + 1 < shape.size(); ++axis) rows *= shape[axis];
  return rows;
}

// Whether each row has its own scale (false), or all have the same (true). Nothing if it is neither.
std::optional<bool> has_one_scale(const Dims& group, const Dims& shape) {
  if (group.back() != shape.back()) return std::nullopt;
  const auto rows = static_cast<std::ptrdiff_t>(shape.size()) - 1;
  if (std::equal(group.begin(), group.begin() + rows, shape.begin())) return true;
  if (std::all_of(group.begin(), group.begin() + rows, [](int64_t extent) { return extent == 1; })) return false;
  return std::nullopt;
}

bool takes_zero_points(const Graph& graph, ValueIndex value) {
  return value == kNoValue || bits_of(graph.tensor(value).dtype) <= 8;
}

// One entry per row, successive rows at the same distance.
bool is_along_rows(const Graph& graph, ValueIndex value, int64_t rows) {
  return value == kNoValue || with_joined_axes(graph.tensor(value), {rows}).has_value();
}

bool take_scales(const Graph& graph, const Op& op, QuantizedRows& rows) {
  if (!has_constant_scales(op.kind)) {
    rows.scales = op.inputs[1];
    if (op.inputs.size() > 2) rows.zero_points = op.inputs[2];
    const int64_t count = rows.has_one_scale ? 1 : rows_of(rows.shape);
    return takes_zero_points(graph, rows.zero_points) && is_along_rows(graph, rows.scales, count) &&
           is_along_rows(graph, rows.zero_points, count);
  }
  if (!rows.has_one_scale) return false;
  rows.given_scale = op.attribute<std::vector<float>>("scales").front();
  if (!op.has_attribute("zps") || op.attribute<std::vector<int64_t>>("zps").empty()) return true;
  rows.given_zero_point = op.attribute<std::vector<int64_t>>("zps").front();
  return true;
}

}  // namespace

int64_t part_of_group(int64_t group) {
  constexpr int64_t kLongest = 256, kUnit = 8;
  if (group <= kLongest) return group < kUnit ? 0 : group;
  for (int64_t part = kLongest; part > 0; part -= kUnit)
    if (group % part == 0) return part;
  return 0;
}

std::optional<LogicalTensor> with_rows_of(const LogicalTensor& tensor, const Dims& shape) {
  const std::optional<LogicalTensor> matrix = with_joined_axes(tensor, {rows_of(shape), shape.back()});
  if (!matrix) return std::nullopt;
  LogicalTensor result = tensor;
  result.shape = shape;
  if (!tensor.has_strides()) return result;
  if (shape.back() > 1 && matrix->strides[1] != 1) return std::nullopt;
  result.strides.assign(shape.size(), 1);
  int64_t stride = matrix->strides[0];
  for (size_t axis = shape.size() - 1; axis-- > 0; stride *= shape[axis]) result.strides[axis] = stride;
  return result;
}

std::optional<QuantizedRows> quantized_rows(const Graph& graph, const Op& product) {
  const LogicalTensor& read = graph.tensor(product.inputs[0]);
  if (!is_matrix_product(product) || product.attribute<bool>("transpose_a") || !read.shape || read.rank() < 2)
    return std::nullopt;
  QuantizedRows rows;
  const Op* const op = dequantize_of(graph, product.inputs[0], rows.ops);
  if (op == nullptr) return std::nullopt;
  rows.value = op->inputs[0], rows.shape = *read.shape;
  const LogicalTensor& tensor = graph.tensor(rows.value);
  if (!is_byte_integer(tensor.dtype) || !tensor.shape || tensor.rank() < 2) return std::nullopt;
  if (!with_rows_of(tensor, rows.shape)) return std::nullopt;
  const std::optional<bool> one = has_one_scale(group_of_scales(*op, *tensor.shape), *tensor.shape);
  if (!one) return std::nullopt;
  rows.has_one_scale = *one;
  return take_scales(graph, *op, rows) ? std::optional(rows) : std::nullopt;
}

}  // namespace lamina
