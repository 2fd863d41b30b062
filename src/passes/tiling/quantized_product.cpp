#include "passes/tiling/quantized_product.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

const Op* only_maker(const Graph& graph, ValueIndex value, int& position) {
  const Value& v = graph.value(value);
  position = v.producer.op;
  return position < 0 || v.consumers.size() != 1 ? nullptr : &graph.op(position);
}

// `columns`: the axis along which scales may differ; -1 if they must be equal.
std::optional<QuantizedFactor> factor_of(const Graph& graph, ValueIndex value, int columns) {
  QuantizedFactor factor;
  int position = 0;
  const Op* op = only_maker(graph, value, position);
  if (op != nullptr && op->kind == OpKind::TypeCast) {
    factor.ops.push_back(position);
    op = only_maker(graph, op->inputs[0], position);
  }
  if (op == nullptr || op->kind != OpKind::Dequantize) return std::nullopt;
  factor.ops.push_back(position);
  factor.value = op->inputs[0];
  factor.scales = op->attribute<std::vector<float>>("scales");
  if (factor.scales.size() > 1) {
    const LogicalTensor& tensor = graph.tensor(factor.value);
    const int axis = wrap_axis(op->attribute<int64_t>("axis"), tensor.rank());
    if (axis != columns || static_cast<int64_t>(factor.scales.size()) != (*tensor.shape)[static_cast<size_t>(axis)])
      return std::nullopt;
  }
  if (!op->has_attribute("zps")) return factor;
  const auto& zero_points = op->attribute<std::vector<int64_t>>("zps");
  if (zero_points.empty()) return factor;
  factor.zero_point = zero_points.front();
  const bool agree = std::all_of(zero_points.begin(), zero_points.end(), [&](int64_t zp) { return zp == factor.zero_point; });
  return agree ? std::optional(factor) : std::nullopt;
}

bool is_integer(const Graph& graph, const QuantizedFactor& factor) { return is_byte_integer(graph.tensor(factor.value).dtype); }

bool is_convolution(const Op& op) { return op.kind == OpKind::Convolution || op.kind == OpKind::ConvTranspose; }

// The axis of the weights along the columns, or channels, of the result; -1: there must be one scale.
int axis_made(const Op& op, int rank) {
  if (is_matrix_product(op)) return rank - (op.attribute<bool>("transpose_b") ? 2 : 1);
  const auto& format = op.attribute<std::string>("weights_format");
  if (op.kind == OpKind::Convolution) return format == "OIX" ? 0 : rank - 1;
  // In a transposed convolution, the groups share that axis.
  if (op.attribute<int64_t>("groups") > 1) return -1;
  return format == "IOX" ? 1 : rank - 2;
}

// Libraries scale a product of integers, and add a bias to it, in f32.
bool suits_types(const Graph& graph, const Op& product) {
  const DataType dst = graph.tensor(product.outputs[0]).dtype;
  if (dst == DataType::f64) return false;
  const bool has_bias = product.inputs.size() > 2 && product.inputs[2] != kNoValue;
  const DataType bias = has_bias ? graph.tensor(product.inputs[2]).dtype : DataType::f32;
  if (is_matrix_product(product)) return bias == DataType::f32;
  return is_convolution(product) && bias != DataType::f16 && dst != DataType::f16;
}

}  // namespace

std::optional<QuantizedProduct> quantized_product(const Graph& graph, const Op& product) {
  if (!is_matrix_product(product) && !is_convolution(product)) return std::nullopt;
  if (!suits_types(graph, product)) return std::nullopt;
  const LogicalTensor& weights = graph.tensor(product.inputs[1]);
  if (!weights.shape || weights.rank() < 2) return std::nullopt;
  const auto left = factor_of(graph, product.inputs[0], -1);
  const auto right = factor_of(graph, product.inputs[1], axis_made(product, weights.rank()));
  if (!left || !right || !is_integer(graph, *left) || !is_integer(graph, *right)) return std::nullopt;
  if (is_convolution(product) && (right->zero_point != 0 || graph.tensor(right->value).dtype != DataType::s8))
    return std::nullopt;
  return QuantizedProduct{*left, *right};
}

bool dequantises_or_casts(const Op& op) {
  return op.kind == OpKind::Dequantize || op.kind == OpKind::DynamicDequantize || op.kind == OpKind::TypeCast;
}

}  // namespace lamina
