#include "passes/extract_subgraph.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/graph_editor.h"
#include "passes/verify_graph.h"

namespace lamina {
namespace {

Graph copy_of_ops(const Partition& partition) {
  std::vector<Op> ops;
  for (const int op : partition.ops) ops.push_back(partition.graph->op(op));
  return GraphEditor::assemble(*partition.graph, std::move(ops));
}

std::string port_name(const Partition& partition, const char* side, const LogicalTensor& tensor) {
  return join("partition ", partition.id, ": ", side, ' ', tensor.id);
}

// Overwrites the values at the partition's border with the given tensors, which keep the ids of the graph.
std::vector<ValueIndex> bind(const Partition& partition, Graph& graph, const char* side, const std::vector<ValueIndex>& ports,
                             std::span<const LogicalTensor> given) {
  if (given.size() != ports.size()) {
    throw Error(Status::invalid_arguments, join("partition ", partition.id, ": ", given.size(), ' ', side,
                                                " tensors are given, allowed is ", ports.size()));
  }
  std::vector<ValueIndex> bound;
  for (size_t i = 0; i < ports.size(); ++i) {
    const LogicalTensor& known = partition.graph->tensor(ports[i]);
    if (given[i].dtype != known.dtype) {
      throw Error(Status::invalid_data_type, join(port_name(partition, side, known), " is ", name_of(given[i].dtype),
                                                  ", allowed is ", name_of(known.dtype)));
    }
    const auto value = graph.find_value(known.id);
    LAMINA_CHECK(value, port_name(partition, side, known));
    LogicalTensor tensor = given[i];
    tensor.id = known.id;
    graph.set_tensor(*value, std::move(tensor));
    bound.push_back(*value);
  }
  return bound;
}

void require_known(const Partition& partition, const Graph& graph, const std::vector<ValueIndex>& inputs) {
  for (const ValueIndex value : inputs) {
    const LogicalTensor& tensor = graph.tensor(value);
    if (!tensor.has_full_shape())
      throw Error(Status::invalid_shape, port_name(partition, "input", tensor) + " is " + describe(tensor) +
                                             ", allowed is a shape without unknown dims");
  }
}

// Values inside the partition are not visible outside, so they get dense layouts.
void forget_inner_tensors(Graph& graph, const std::vector<ValueIndex>& outputs) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto index = static_cast<ValueIndex>(i);
    const Value& value = graph.value(index);
    if (value.producer.op < 0 || std::find(outputs.begin(), outputs.end(), index) != outputs.end()) continue;
    LogicalTensor tensor = value.tensor;
    tensor.shape.reset();
    tensor.strides.clear();
    tensor.layout = LayoutType::strided;
    graph.set_tensor(index, std::move(tensor));
  }
}

// Shapes that no rule infers (Wildcard, axes given as an input) are copied from the whole graph.
bool recall_shapes(const Graph& known, Graph& graph) {
  bool recalled = false;
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto index = static_cast<ValueIndex>(i);
    LogicalTensor tensor = graph.tensor(index);
    if (tensor.has_full_shape()) continue;
    const LogicalTensor& before = known.tensor(*known.find_value(tensor.id));
    if (!before.has_full_shape()) continue;
    tensor.shape = before.shape;
    graph.set_tensor(index, std::move(tensor));
    recalled = true;
  }
  return recalled;
}

void make_dense(Graph& graph) {
  for (size_t i = 0; i < graph.values().size(); ++i) {
    const auto index = static_cast<ValueIndex>(i);
    graph.set_tensor(index, made_dense(graph.tensor(index)));
  }
}

void require_outputs_fit(const Partition& partition, const Graph& graph, const std::vector<ValueIndex>& outputs,
                         std::span<const LogicalTensor> given) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const LogicalTensor& made = graph.tensor(outputs[i]);
    if (!made.has_full_shape())
      throw Error(Status::invalid_shape, port_name(partition, "output", made) +
                                             " has a shape that cannot be inferred, allowed is a shape without unknown dims");
    if (given[i].shape && !dims_agree(*given[i].shape, *made.shape))
      throw Error(Status::invalid_shape, join(port_name(partition, "output", made), " is given ", describe(*given[i].shape),
                                              ", allowed is ", describe(*made.shape)));
  }
}

}  // namespace

Subgraph extract_subgraph(const Partition& partition, std::span<const LogicalTensor> inputs,
                          std::span<const LogicalTensor> outputs) {
  Subgraph result{copy_of_ops(partition), {}, {}};
  Graph& graph = result.graph;
  result.inputs = bind(partition, graph, "input", partition.inputs, inputs);
  result.outputs = bind(partition, graph, "output", partition.outputs, outputs);
  require_known(partition, graph, result.inputs);
  forget_inner_tensors(graph, result.outputs);
  graph.infer_shapes();
  if (recall_shapes(*partition.graph, graph)) graph.infer_shapes();
  require_outputs_fit(partition, graph, result.outputs, outputs);
  make_dense(graph);
  verify_graph(graph, "extract_subgraph");
  return result;
}

}  // namespace lamina
