#include "lamina/load.h"

#include <iostream>
#include <map>

#include "interface/json/json.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::driver {
namespace {

// Graph inputs need known shapes for allocation and compilation.
void require_known_inputs(const Graph& graph, const std::string& file) {
  for (const ValueIndex input : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(input);
    if (!tensor.has_full_shape())
      throw Error(Status::invalid_shape, join(file, ": input tensor ", tensor.id, " is ", describe(tensor),
                                              ", allowed is a known shape: set one with --set-shape ", tensor.id, ":4x8"));
    if (tensor.dtype == DataType::undef)
      throw Error(Status::invalid_data_type,
                  join(file, ": input tensor ", tensor.id, " has type undef, allowed is a known type"));
  }
}

bool is_per_channel(const DumpedOp& op) {
  if (!has_constant_scales(op.kind)) return false;
  const auto qtype = op.attributes.find("qtype");
  const auto* text = qtype == op.attributes.end() ? nullptr : std::get_if<std::string>(&qtype->second);
  return text != nullptr && *text == "per_channel";
}

template <typename T, typename At>
void resize_list(Attributes& attributes, const char* name, size_t count, const At& at) {
  const auto found = attributes.find(name);
  auto* list = found == attributes.end() ? nullptr : std::get_if<std::vector<T>>(&found->second);
  if (list == nullptr || list->empty() || list->size() == count) return;
  std::vector<T> resized;
  for (size_t i = 0; i < count; ++i) resized.push_back(at(*list, i));
  *list = std::move(resized);
}

// After a change of shape, per-channel scales are repeated, and zero points padded with 0, up to the channel count. To infer
// the shapes, the graph is built with one scale for all channels.
void stretch_quantization(GraphDump& dump, const std::string& file) {
  GraphDump plain = dump;
  for (DumpedOp& op : plain.ops) {
    if (!is_per_channel(op)) continue;
    op.attributes["qtype"] = std::string("per_tensor");
    op.attributes["scales"] = std::vector<float>{1.0F};
    op.attributes.erase("zps");
  }
  Graph graph = build_graph(plain, file);
  finalize_graph(graph, file);
  for (DumpedOp& op : dump.ops) {
    if (!is_per_channel(op) || op.inputs.empty()) continue;
    const LogicalTensor& src = graph.tensor(*graph.find_value(op.inputs.front().id));
    const auto axis = op.attributes.find("axis");
    const int at = wrap_axis(axis == op.attributes.end() ? 1 : std::get<int64_t>(axis->second), src.rank());
    if (!src.has_full_shape() || at < 0 || at >= src.rank()) continue;
    const auto channels = static_cast<size_t>((*src.shape)[static_cast<size_t>(at)]);
    resize_list<float>(op.attributes, "scales", channels,
                       [](const std::vector<float>& old, size_t i) { return old[i % old.size()]; });
    resize_list<int64_t>(op.attributes, "zps", channels,
                         [](const std::vector<int64_t>& old, size_t i) { return i < old.size() ? old[i] : 0; });
  }
}

}  // namespace

Graph load_graph(const std::string& file, const Overrides& overrides) {
  GraphDump dump = parse_graph_json(read_dump_file(file), file);
  try {
    apply_overrides(dump, overrides);
  } catch (const Error& error) {
    throw error.in_file(file);
  }
  if (!overrides.shapes.empty()) stretch_quantization(dump, file);
  Graph graph = build_graph(dump, file);
  finalize_graph(graph, file);
  if (graph.ops().empty()) throw Error(Status::invalid_graph, file + ": the graph has no op, allowed is one or more");
  require_known_inputs(graph, file);
  return graph;
}

const std::vector<std::string>& engine_names() {
  static const std::vector<std::string> names = {"cpu", "gpu", "reference"};
  return names;
}

const Backend& backend_for(const std::string& engine, const std::string& device) {
  if (engine == "reference") return reference_backend();
  if (engine != "gpu") return cpu_backend();
  static std::map<std::string, std::shared_ptr<const Backend>> opened;
  auto& backend = opened[device];
  try {
    if (backend == nullptr) backend = open_gpu_backend(device);
  } catch (const Error& error) {
    throw Error(error.status(), join("--engine gpu: ", error.what()));
  }
  return *backend;
}

const Backend& backend_of(const Graph& graph, const std::string& file, const std::string& engine, const std::string& device) {
  if (!engine.empty()) return backend_for(engine, device);
  if (!device.empty()) return backend_for("gpu", device);
  if (graph.engine_kind != EngineKind::gpu) return cpu_backend();
  try {
    const Backend& backend = backend_for("gpu", device);
    std::cerr << file << ": engine_kind is gpu, it runs on " << backend.name() << "; --engine cpu runs it on the CPU\n";
    return backend;
  } catch (const Error& error) {
    std::cerr << file << ": engine_kind is gpu, it runs on the CPU: " << error.what() << '\n';
    return cpu_backend();
  }
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
