#include "passes/tiling/dequantized_weights.h"

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

// The entries along each axis of the weights that share a scale.
Dims group_of(const Op& op, const Dims& shape) {
  const auto& qtype = op.attribute<std::string>("qtype");
  if (qtype == "per_group") return op.attribute<std::vector<int64_t>>("group_shape");
  Dims group = shape;
  if (qtype == "per_channel") group[static_cast<size_t>(wrap_axis(op.attribute<int64_t>("axis"), 2))] = 1;
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

}  // namespace

std::optional<DequantizedWeights> dequantized_weights(const Graph& graph, const Op& product) {
  if (!is_matrix_product(product) || graph.tensor(product.inputs[1]).dtype == DataType::f64) return std::nullopt;
  DequantizedWeights weights;
  int position = only_maker(graph, product.inputs[1]);
  if (position >= 0 && schema_of(graph.op(position).kind).traits.converts) {
    weights.ops.push_back(position);
    position = only_maker(graph, graph.op(position).inputs[0]);
  }
  if (position < 0) return std::nullopt;
  const Op& op = graph.op(position);
  if (op.kind != OpKind::Dequantize && op.kind != OpKind::DynamicDequantize) return std::nullopt;
  weights.ops.push_back(position);
  weights.value = op.inputs[0];
  const LogicalTensor& tensor = graph.tensor(weights.value);
  if (!takes(tensor.dtype) || !tensor.shape || tensor.rank() != 2) return std::nullopt;
  for (const int each : weights.ops) {
    const DataType dtype = graph.tensor(graph.op(each).outputs[0]).dtype;
    if (dtype != DataType::f32 && !is_narrow(dtype)) return std::nullopt;
    if (is_narrow(dtype)) weights.rounds_to = dtype;
  }
  const Dims group = group_of(op, *tensor.shape);
  const size_t rows = product.attribute<bool>("transpose_b") ? 1 : 0;
  weights.group_rows = group[rows], weights.group_columns = group[1 - rows];
  if (has_constant_scales(op.kind))
    take_attributes(op, weights);
  else
    take_inputs(op, weights);
  return weights;
}

}  // namespace lamina
