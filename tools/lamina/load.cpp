#include "lamina/load.h"

#include <chrono>

#include "interface/json.h"
#include "interface/status.h"

namespace lamina::driver {
namespace {

// Every graph input needs a shape before anything can be allocated or compiled.
void require_known_inputs(const Graph& graph, const std::string& file) {
  for (const ValueIndex input : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(input);
    if (!tensor.has_full_shape())
      throw Error(Status::invalid_shape, join(file, ": input tensor ", tensor.id, " is ", describe(tensor),
                                              ", allowed is a known shape: give one with --set-shape ", tensor.id, ":4x8"));
    if (tensor.dtype == DataType::undef)
      throw Error(Status::invalid_data_type,
                  join(file, ": input tensor ", tensor.id, " has type undef, allowed is a known type"));
  }
}

LogicalTensor port_tensor(const Graph& graph, ValueIndex value) {
  LogicalTensor tensor = graph.tensor(value);
  if (tensor.has_strides() || !tensor.has_full_shape()) return tensor;
  tensor.strides = dense_strides(*tensor.shape);
  tensor.layout = LayoutType::strided;
  return tensor;
}

}  // namespace

Graph load_graph(const std::string& file, const Overrides& overrides) {
  GraphDump dump = parse_graph_json(read_dump_file(file), file);
  try {
    apply_overrides(dump, overrides);
  } catch (const Error& error) {
    throw Error(error.status(), join(file, ": ", error.what()));
  }
  Graph graph = build_graph(dump, file);
  finalize_graph(graph, file);
  if (graph.ops().empty()) throw Error(Status::invalid_graph, file + ": the graph has no op, allowed is one or more");
  require_known_inputs(graph, file);
  return graph;
}

const Backend& backend_for(const std::string& engine) {
  if (engine == "reference") return reference_backend();
  if (engine == "gpu")
    throw Error(Status::unimplemented, "--engine gpu: this build has no GPU backend, allowed is cpu or reference");
  return cpu_backend();
}

CompiledPartition compile_partition(const Partition& partition, const Backend& backend) {
  const auto start = std::chrono::steady_clock::now();
  CompiledPartition compiled;
  for (const ValueIndex input : partition.inputs) compiled.inputs.push_back(port_tensor(*partition.graph, input));
  for (const ValueIndex output : partition.outputs) compiled.outputs.push_back(port_tensor(*partition.graph, output));
  compiled.subgraph = extract_subgraph(partition, compiled.inputs, compiled.outputs);
  for (size_t i = 0; i < compiled.outputs.size(); ++i)
    compiled.outputs[i] = port_tensor(compiled.subgraph.graph, compiled.subgraph.outputs[i]);
  compiled.executable = backend.compile(compiled.subgraph.graph, compiled.subgraph.inputs, compiled.subgraph.outputs);
  compiled.compile_ms = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  return compiled;
}

std::string describe_ops(const Partition& partition) {
  std::string text;
  for (const int op : partition.ops)
    text += (text.empty() ? "" : " + ") + describe(partition.graph->ops()[static_cast<size_t>(op)]);
  return text;
}

std::string place_of(const std::string& file, const Partition& partition) {
  const Op& op = partition.graph->ops()[static_cast<size_t>(partition.ops.front())];
  return join(file, ": op ", op.id, " (", describe(op), "): ");
}

}  // namespace lamina::driver
