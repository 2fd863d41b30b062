#include "passes/tiling/dequantized_weights.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "interface/op_schema.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

// The op that computes a value which only one port reads; -1 if there is none.
int only_maker(const Graph& graph, ValueIndex value) {
  const Value& v = graph.value(value);
  return v.consumers.size() == 1 ? v.producer.op : -1;
}

bool is_narrow(DataType dtype) { return dtype == DataType::bf16 || dtype == DataType::f16; }

bool takes(DataType dtype) {
  return dtype == DataType::s4 || dtype == DataType::u4 || dtype == DataType::s8 || dtype == DataType::u8;
}

// The axes of a tensor that are joined to one: [first, end).
struct JoinedAxes {
  size_t first, end;
};

// By axis of `shape`.
std::optional<std::vector<JoinedAxes>> joined_axes(const Dims& divided, const Dims& shape) {
  std::vector<JoinedAxes> joined;
  size_t at = 0;
  for (const int64_t extent : shape) {
    const size_t first = at;
    int64_t product = 1;
    while (at < divided.size() && (product < extent || divided[at] == 1)) product *= divided[at++];
    if (product != extent) return std::nullopt;
    joined.push_back({first, at});
  }
  return at == divided.size() ? std::optional(joined) : std::nullopt;
}

// Entries of the joined axis that share a scale. Nothing if these are not successive.
std::optional<int64_t> joined_group(const Dims& group, const Dims& shape, const JoinedAxes& axes) {
  int64_t joined = 1;
  for (size_t axis = axes.end; axis-- > axes.first;) {
    const bool inner_are_whole =
        std::equal(group.begin() + static_cast<std::ptrdiff_t>(axis) + 1, group.begin() + static_cast<std::ptrdiff_t>(axes.end),
                   shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1);
    if (group[axis] != 1 && !inner_are_whole) return std::nullopt;
    joined *= group[axis];
  }
  return joined;
}

// Those along each axis of the matrix.
std::optional<Dims> group_of_matrix(const Op& op, const Dims& shape, const Dims& matrix) {
  const auto joined = joined_axes(shape, matrix);
  if (!joined) return std::nullopt;
  const Dims divided = group_of_scales(op, shape);
  Dims group;
  for (const JoinedAxes& axes : *joined) {
    const auto of_axis = joined_group(divided, shape, axes);
    if (!of_axis) return std::nullopt;
    group.push_back(*of_axis);
  }
  return group;
}

void take_attributes(const Op& op, DequantizedWeights& weights) {
  weights.given_scales = op.attribute<std::vector<float>>("scales");
  if (!op.has_attribute("zps")) return;
  for (const int64_t zero_point : op.attribute<std::vector<int64_t>>("zps"))
    weights.given_zero_points.push_back(static_cast<float>(zero_point));
}

void take_inputs(const Op& op, DequantizedWeights& weights) {
  weights.scales = op.inputs[1];
  if (op.inputs.size() > 2) weights.zero_points = op.inputs[2];
}

// Integers of 32 bits would not hold the sums of others.
bool takes_zero_points(const Graph& graph, const DequantizedWeights& weights) {
  constexpr float kMost = 255;
  const auto& given = weights.given_zero_points;
  return std::all_of(given.begin(), given.end(), [](float zero_point) { return std::abs(zero_point) <= kMost; }) &&
         (weights.zero_points == kNoValue || bits_of(graph.tensor(weights.zero_points).dtype) <= 8);
}

// Whether the integers, and scales and zero points with one entry per group, can be read as matrices. Notes that they are.
bool joins_axes(const Graph& graph, const Dims& matrix, const Dims& group, DequantizedWeights& weights) {
  const Dims groups{matrix[0] / group[0], matrix[1] / group[1]};
  const auto is_joined = [&](ValueIndex value, const Dims& shape) {
    return value == kNoValue || with_joined_axes(graph.tensor(value), shape).has_value();
  };
  weights.matrix = matrix;
  return weights.given_scales.size() <= 1 && is_joined(weights.value, matrix) && is_joined(weights.scales, groups) &&
         is_joined(weights.zero_points, groups);
}

}  // namespace

Dims group_of_scales(const Op& op, const Dims& shape) {
  const auto& qtype = op.attribute<std::string>("qtype");
  if (qtype == "per_group") return op.attribute<std::vector<int64_t>>("group_shape");
  Dims group = shape;
  if (qtype == "per_channel")
    group[static_cast<size_t>(wrap_axis(op.attribute<int64_t>("axis"), static_cast<int>(shape.size())))] = 1;
  return group;
}

std::vector<ValueIndex> DequantizedWeights::operands() const {
  std::vector<ValueIndex> values;
  const auto add = [&](ValueIndex operand) {
    if (operand != kNoValue) values.push_back(operand);
  };
  add(scales), add(zero_points);
  if (rows) add(rows->scales), add(rows->zero_points);
  return values;
}

std::optional<LogicalTensor> with_joined_axes(const LogicalTensor& tensor, const Dims& shape) {
  if (!tensor.shape) return std::nullopt;
  const auto joined = joined_axes(*tensor.shape, shape);
  if (!joined) return std::nullopt;
  LogicalTensor result = tensor;
  result.shape = shape;
  if (!tensor.has_strides()) return result;
  result.strides.clear();
  for (const auto& [first, end] : *joined) {
    int64_t stride = 1, extent = 1;  // of the axes so far
    for (size_t axis = end; axis-- > first;) {
      if ((*tensor.shape)[axis] == 1) continue;
      if (extent == 1)
        stride = tensor.strides[axis];
      else if (tensor.strides[axis] != extent * stride)
        return std::nullopt;
      extent *= (*tensor.shape)[axis];
    }
    result.strides.push_back(stride);
  }
  return result;
}

const Op* dequantize_of(const Graph& graph, ValueIndex value, std::vector<int>& ops) {
  for (int position = only_maker(graph, value); position >= 0; position = only_maker(graph, value)) {
    const Op& op = graph.op(position);
    const OpSchema& schema = schema_of(op.kind);
    ops.push_back(position);
    if (op.kind == OpKind::Dequantize || op.kind == OpKind::DynamicDequantize) return &op;
    if (!schema.traits.converts && schema.nest != LoopNest::reshaped) return nullptr;
    value = op.inputs[0];
  }
  return nullptr;
}

std::optional<DequantizedWeights> dequantized_weights(const Graph& graph, const Op& product) {
  if (!is_matrix_product(product) || graph.tensor(product.inputs[1]).dtype == DataType::f64) return std::nullopt;
  DequantizedWeights weights;
  const Op* const made_by = dequantize_of(graph, product.inputs[1], weights.ops);
  if (made_by == nullptr) return std::nullopt;
  const Op& op = *made_by;
  weights.value = op.inputs[0];
  const LogicalTensor &tensor = graph.tensor(weights.value), &read = graph.tensor(product.inputs[1]);
  if (!takes(tensor.dtype) || !tensor.shape || !read.shape || read.rank() != 2) return std::nullopt;
  for (const int each : weights.ops) {
    const DataType dtype = graph.tensor(graph.op(each).outputs[0]).dtype;
    if (dtype != DataType::f32 && !is_narrow(dtype)) return std::nullopt;
    if (is_narrow(dtype)) weights.rounds_to = dtype;
  }
  const std::optional<Dims> group = group_of_matrix(op, *tensor.shape, *read.shape);
  if (!group) return std::nullopt;
  const size_t rows = product.attribute<bool>("transpose_b") ? 1 : 0;
  weights.group_rows = (*group)[rows], weights.group_columns = (*group)[1 - rows];
  if (has_constant_scales(op.kind))
    take_attributes(op, weights);
  else
    take_inputs(op, weights);
  if (*tensor.shape != *read.shape && !joins_axes(graph, *read.shape, *group, weights)) return std::nullopt;
  if (part_of_group(weights.group_rows) > 0 && takes_zero_points(graph, weights)) weights.rows = quantized_rows(graph, product);
  return weights;
}

}  // namespace lamina
