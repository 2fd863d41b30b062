#include "passes/core/graph_editor.h"

#include <unordered_map>
#include <utility>

#include "interface/op_schema.h"

namespace lamina {
namespace {

std::vector<ValueIndex> in_port_order(const std::vector<const PortSpec*>& ports, const Ports& values) {
  std::vector<ValueIndex> ordered;
  for (const PortSpec* port : ports) {
    const auto found = values.find(port->name);
    ordered.push_back(found == values.end() ? kNoValue : found->second);
  }
  while (!ordered.empty() && ordered.back() == kNoValue) ordered.pop_back();
  return ordered;
}

}  // namespace

void connect_ports(Op& op, const Ports& inputs, const Ports& outputs) {
  const OpSchema& schema = schema_of(op.kind);
  op.inputs = in_port_order(existing_inputs(schema, op.attributes), inputs);
  op.outputs = in_port_order(existing_outputs(schema, op.attributes), outputs);
}

Graph GraphEditor::finish() {
  std::vector<Op> kept;
  for (size_t i = 0; i < ops_.size(); ++i) {
    for (Op& op : inserted_[i]) kept.push_back(std::move(op));
    if (!removed_[i]) kept.push_back(std::move(ops_[i]));
  }
  Graph graph = assemble(source_, std::move(kept), added_);
  graph.warnings_ = source_.warnings_;
  return graph;
}

Graph GraphEditor::assemble(const Graph& source, std::vector<Op> ops, const std::vector<LogicalTensor>& added) {
  Graph graph;
  graph.engine_kind = source.engine_kind;
  graph.fpmath_mode = source.fpmath_mode;
  graph.fpmath_apply_to_int = source.fpmath_apply_to_int;
  graph.ops_ = std::move(ops);
  std::unordered_map<ValueIndex, ValueIndex> renumbered;
  const auto take = [&](ValueIndex& index) -> Value& {
    const auto [found, is_new] = renumbered.try_emplace(index, static_cast<ValueIndex>(graph.values_.size()));
    if (is_new) {
      const auto place = static_cast<size_t>(index), known = source.values().size();
      Value value = place < known ? Value{source.tensor(index), {}, {}, source.value(index).constant}
                                  : Value{added[place - known], {}, {}};
      graph.value_by_id_.emplace(value.tensor.id, found->second);
      graph.values_.push_back(std::move(value));
    }
    index = found->second;
    return graph.values_[static_cast<size_t>(index)];
  };
  for (size_t i = 0; i < graph.ops_.size(); ++i) {
    Op& op = graph.ops_[i];
    const int position = static_cast<int>(i);
    graph.op_by_id_.emplace(op.id, position);
    for (size_t port = 0; port < op.inputs.size(); ++port)
      if (op.inputs[port] != kNoValue) take(op.inputs[port]).consumers.push_back({position, static_cast<int>(port)});
    for (size_t port = 0; port < op.outputs.size(); ++port)
      if (op.outputs[port] != kNoValue) take(op.outputs[port]).producer = {position, static_cast<int>(port)};
  }
  graph.finalized_ = true;
  return graph;
}

Graph GraphEditor::extend(const Graph& source, std::vector<Op> ops, const std::vector<LogicalTensor>& added) {
  Graph graph = source;
  graph.ops_ = std::move(ops);
  for (Value& value : graph.values_) value.producer = {}, value.consumers.clear();
  for (const LogicalTensor& tensor : added) {
    graph.value_by_id_.emplace(tensor.id, static_cast<ValueIndex>(graph.values_.size()));
    graph.values_.push_back({tensor, {}, {}});
  }
  for (size_t i = 0; i < graph.ops_.size(); ++i) {
    const Op& op = graph.ops_[i];
    const int position = static_cast<int>(i);
    graph.op_by_id_.emplace(op.id, position);
    for (size_t port = 0; port < op.inputs.size(); ++port)
      if (op.inputs[port] != kNoValue) graph.value_of(op.inputs[port]).consumers.push_back({position, static_cast<int>(port)});
    for (size_t port = 0; port < op.outputs.size(); ++port)
      if (op.outputs[port] != kNoValue) graph.value_of(op.outputs[port]).producer = {position, static_cast<int>(port)};
  }
  return graph;
}

}  // namespace lamina
