#include "passes/canonicalize.h"

#include <algorithm>
#include <string>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "passes/core/graph_editor.h"

namespace lamina {
namespace {

// Turns `op` into a LayerNormBackward with these attributes and values by port name.
void become_layer_norm_backward(Op& op, Attributes attributes, const Ports& inputs, const Ports& outputs) {
  op.kind = OpKind::LayerNormBackward;
  op.attributes = std::move(attributes);
  fill_defaults(op);
  connect_ports(op, inputs, outputs);
}

//   input_forward, output_delta, [gamma, beta], [mean, variance]  ==>  src, diff_dst, [mean, variance], [gamma, beta]
void rewrite_layer_norm_backprop(const Graph& graph, Op& op) {
  const auto in = [&](std::string_view port) { return graph.input_value(op, port); };
  const auto out = [&](std::string_view port) { return graph.output_value(op, port); };
  const Ports inputs{{"src", in("input_forward")}, {"diff_dst", in("output_delta")}, {"mean", in("mean")},
                     {"variance", in("variance")}, {"gamma", in("gamma")},           {"beta", in("beta")}};
  const Ports outputs{{"diff_src", out("input_delta")}, {"diff_gamma", out("gamma_delta")}, {"diff_beta", out("beta_delta")}};
  Attributes attributes;
  for (const char* name : {"begin_norm_axis", "use_affine", "epsilon", "use_stats"})
    attributes[name] = op.attributes.find(name)->second;
  become_layer_norm_backward(op, std::move(attributes), inputs, outputs);
}

//   dy, x, variance, mean, gamma  ==>  src, diff_dst, mean, variance, gamma
// The rank of gamma is the number of normalised axes. Statistics keep their shape [A1..Ai, 1, .., 1].
void rewrite_layer_norm_grad(const Graph& graph, Op& op) {
  const LogicalTensor& gamma = *graph.input(op, "gamma");
  if (!gamma.shape) {
    throw Error(Status::invalid_shape, place_of(op, "input gamma"),
                "the rank of input gamma is unknown, but it is the number of normalised axes");
  }
  const auto in = [&](std::string_view port) { return graph.input_value(op, port); };
  const auto out = [&](std::string_view port) { return graph.output_value(op, port); };
  const Ports inputs{
      {"src", in("x")}, {"diff_dst", in("dy")}, {"mean", in("mean")}, {"variance", in("variance")}, {"gamma", in("gamma")}};
  const Ports outputs{{"diff_src", out("pd_x")}, {"diff_gamma", out("pd_gamma")}, {"diff_beta", out("pd_beta")}};
  Attributes attributes{{"begin_norm_axis", -static_cast<int64_t>(gamma.rank())},
                        {"epsilon", op.attributes.find("epsilon")->second}};
  become_layer_norm_backward(op, std::move(attributes), inputs, outputs);
}

// An empty order reverses the axes. It is written out if the rank is known.
bool spell_out_order(const Graph& graph, Op& op) {
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  if (!op.attribute<std::vector<int64_t>>("order").empty() || src.rank() < 1) return false;
  std::vector<int64_t> order;
  for (int64_t axis = src.rank(); axis-- > 0;) order.push_back(axis);
  op.attributes["order"] = std::move(order);
  return true;
}

// Replaces extents that equal those of src by 1, which keeps the extent of src.
bool leave_known_extents(const Graph& graph, Op& op) {
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  auto shape = op.attribute<std::vector<int64_t>>("shape");
  if (src.rank() < 0) return false;
  bool changed = false;
  for (size_t i = 1; i <= shape.size() && i <= src.shape->size(); ++i) {
    int64_t& entry = shape[shape.size() - i];
    if (entry < 0 || entry == 1 || entry != (*src.shape)[src.shape->size() - i]) continue;
    entry = 1;
    changed = true;
  }
  if (changed) op.attributes["shape"] = std::move(shape);
  return changed;
}

// Axes that are an input of one element with a known value become the attribute.
bool take_axes_from_input(const Graph& graph, Op& op) {
  const ValueIndex axes = graph.input_value(op, "axes");
  if (axes == kNoValue) return false;
  const LogicalTensor& tensor = graph.tensor(axes);
  const auto known = graph.value(axes).constant;
  if (!known || !tensor.has_full_shape() || tensor.element_count() != 1) return false;
  op.attributes["axes"] = std::vector<int64_t>{static_cast<int64_t>(*known)};
  op.inputs.resize(1);
  return true;
}

bool is_identity(const std::vector<int64_t>& order) {
  for (size_t i = 0; i < order.size(); ++i)
    if (wrap_axis(order[i], static_cast<int>(order.size())) != static_cast<int>(i)) return false;
  return true;
}

bool same_known_shape(const LogicalTensor& a, const LogicalTensor& b) { return a.has_full_shape() && a.shape == b.shape; }

// Whether every reader broadcasts anyway, because another operand has the full shape.
bool is_repeated_by_its_readers(const Graph& graph, const Op& expand) {
  const LogicalTensor& dst = graph.tensor(expand.outputs[0]);
  const auto has_the_shape = [&](ValueIndex operand) {
    const int producer = operand == kNoValue ? -1 : graph.value(operand).producer.op;
    if (operand == kNoValue || (producer >= 0 && graph.op(producer).kind == expand.kind)) return false;
    return same_known_shape(graph.tensor(operand), dst);
  };
  const auto repeats = [&](const Port& port) {
    const Op& reader = graph.op(port.op);
    // The two values of a Select decide its shape; the condition is broadcast to it.
    const auto deciding = reader.inputs.begin() + (reader.kind == OpKind::Select ? 1 : 0);
    return reader.has_attribute("auto_broadcast") && reader.attribute<std::string>("auto_broadcast") == "numpy" &&
           std::any_of(deciding, reader.inputs.end(), has_the_shape);
  };
  const std::vector<Port>& readers = graph.value(expand.outputs[0]).consumers;
  return std::all_of(readers.begin(), readers.end(), repeats);
}

bool changes_nothing(const Graph& graph, const Op& op) {
  if (op.inputs.size() != 1 || op.outputs.size() != 1 || op.inputs[0] == kNoValue || op.outputs[0] == kNoValue) return false;
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  const LogicalTensor& dst = graph.tensor(op.outputs[0]);
  if (src.dtype != dst.dtype) return false;
  switch (op.kind) {
    case OpKind::TypeCast: return true;
    case OpKind::StaticReshape:
    case OpKind::Slice: return same_known_shape(src, dst);
    case OpKind::Expand: return same_known_shape(src, dst) || is_repeated_by_its_readers(graph, op);
    case OpKind::StaticTranspose:  // without a known rank an empty order may be any permutation
      return !op.attribute<std::vector<int64_t>>("order").empty() && is_identity(op.attribute<std::vector<int64_t>>("order"));
    case OpKind::Reorder: return !dst.has_strides() || (src.has_strides() && src.strides == dst.strides);
    default: return false;
  }
}

// ---- scales of a grouped ConvTranspose

// The ConvTranspose whose weights the value becomes through conversions only; nullptr if another op reads it too.
const Op* conv_transpose_of_weights(const Graph& graph, ValueIndex value) {
  while (graph.value(value).consumers.size() == 1) {
    const Op& reader = graph.op(graph.value(value).consumers.front().op);
    if (reader.kind == OpKind::ConvTranspose) return graph.input_value(reader, "weights") == value ? &reader : nullptr;
    if (!schema_of(reader.kind).traits.converts && !has_constant_scales(reader.kind)) return nullptr;
    value = reader.outputs.front();
  }
  return nullptr;
}

template <typename T>
void repeat_entries(Op& op, std::string_view attribute, int64_t times) {
  if (!op.has_attribute(attribute)) return;
  std::vector<T> repeated;
  for (const T entry : op.attribute<std::vector<T>>(attribute))
    repeated.insert(repeated.end(), static_cast<size_t>(times), entry);
  op.attributes.find(attribute)->second = std::move(repeated);
}

// Weights of a grouped ConvTranspose with one output channel per group may have one scale per group along that axis of extent
// 1. Group g owns input channels [g * I, (g + 1) * I), so the scales move to the axis of the input channels, each repeated I
// times.
bool move_group_scales(const Graph& graph, Op& op) {
  if (fault_of_scales(graph, op).empty()) return false;
  const Op* reader = conv_transpose_of_weights(graph, op.outputs[0]);
  if (reader == nullptr) return false;
  const LogicalTensor& weights = graph.tensor(op.inputs[0]);
  const bool inputs_first = reader->attribute<std::string>("weights_format") == "IOX";
  const int64_t inputs_axis = inputs_first ? 0 : weights.rank() - 1, outputs_axis = inputs_first ? 1 : weights.rank() - 2;
  const auto groups = reader->attribute<int64_t>("groups");
  const int64_t inputs = (*weights.shape)[static_cast<size_t>(inputs_axis)];
  const bool per_group = wrap_axis(op.attribute<int64_t>("axis"), weights.rank()) == outputs_axis && inputs % groups == 0 &&
                         static_cast<int64_t>(op.attribute<std::vector<float>>("scales").size()) == groups;
  if (!per_group) return false;
  repeat_entries<float>(op, "scales", inputs / groups);
  repeat_entries<int64_t>(op, "zps", inputs / groups);
  op.attributes.find("axis")->second = inputs_axis;
  return true;
}

// Rewrites the op into its current form; false if it has that form already.
bool rewrite(const Graph& graph, Op& op) {
  switch (op.kind) {
    case OpKind::LayerNormBackprop: rewrite_layer_norm_backprop(graph, op); return true;
    case OpKind::LayerNormGrad: rewrite_layer_norm_grad(graph, op); return true;
    default: break;
  }
  switch (schema_of(op.kind).nest) {
    case LoopNest::transposed: return spell_out_order(graph, op);
    case LoopNest::repeated: return leave_known_extents(graph, op);
    case LoopNest::listed_axes: return take_axes_from_input(graph, op);
    default: return move_group_scales(graph, op);
  }
}

// Whether ops that lamina computes read the value, and no others. The caller computes an opaque op, from the value that it
// named.
bool is_inner(const Graph& graph, ValueIndex value) {
  const std::vector<Port>& consumers = graph.value(value).consumers;
  return !consumers.empty() && std::none_of(consumers.begin(), consumers.end(), [&](const Port& port) {
    const OpClass reader = schema_of(graph.op(port.op).kind).op_class;
    return reader == OpClass::marker || reader == OpClass::opaque;
  });
}

// A dropped op is recorded at the first op that reads its value: `origins` of the remaining ops name every op of the user.
void keep_origins(GraphEditor& editor, const std::vector<size_t>& dropped) {
  const Graph& graph = editor.source();
  std::vector<int> heir(graph.ops().size());
  for (size_t i = 0; i < heir.size(); ++i) heir[i] = static_cast<int>(i);
  for (auto i = dropped.rbegin(); i != dropped.rend(); ++i) {
    const Op& op = graph.ops()[*i];
    heir[*i] = heir[static_cast<size_t>(graph.value(op.outputs[0]).consumers.front().op)];
  }
  for (const size_t i : dropped) {
    const Op& op = graph.ops()[i];
    std::vector<Origin>& origins = editor.op(static_cast<size_t>(heir[i])).origins;
    origins.push_back({op.id, op.kind, op.name});
    origins.insert(origins.end(), op.origins.begin(), op.origins.end());
  }
}

}  // namespace

std::optional<Graph> canonicalize(const Graph& graph) {
  GraphEditor editor(graph);
  bool rewritten = false;
  std::vector<size_t> dropped;
  std::vector<ValueIndex> stands_for(graph.values().size());  // for the output of a dropped op: the op's input
  for (size_t i = 0; i < stands_for.size(); ++i) stands_for[i] = static_cast<ValueIndex>(i);
  for (size_t i = 0; i < editor.op_count(); ++i) {
    Op& op = editor.op(i);
    rewritten = rewrite(graph, op) || rewritten;
    const bool drop = changes_nothing(graph, op) && is_inner(graph, op.outputs[0]);
    for (ValueIndex& input : op.inputs)
      if (input != kNoValue) input = stands_for[static_cast<size_t>(input)];
    if (!drop) continue;
    stands_for[static_cast<size_t>(op.outputs[0])] = op.inputs[0];
    editor.remove(i);
    dropped.push_back(i);
  }
  if (!rewritten && dropped.empty()) return std::nullopt;
  keep_origins(editor, dropped);
  Graph canonical = editor.finish();
  if (rewritten) canonical.infer_shapes();  // axes that are now known allow more shapes to be inferred
  return canonical;
}

}  // namespace lamina
