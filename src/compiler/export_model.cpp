#include "compiler/export_model.h"

#include <algorithm>
#include <future>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "backends/cache/sha256.h"
#include "backends/exported_model.h"
#include "compiler/compile.h"
#include "compiler/crc32.h"
#include "compiler/exported_texts.h"
#include "compiler/exported_weights.h"
#include "compiler/ports.h"
#include "compiler/zip_writer.h"
#include "interface/json/json.h"
#include "interface/status.h"
#include "kernels/arena.h"
#include "passes/pipeline.h"

namespace lamina::compiler {

namespace {

using Value = ExportedModel::Value;

constexpr size_t kAlignment = 64;
constexpr size_t kProgramAlignment = size_t{16} << 10;  // of images in programs, which are mapped

// Ops that cannot be exported, so that one error names all of them.
class Refusals {
 public:
  template <typename Action>
  void attempt(const Action& action) {
    try {
      action();
    } catch (const Error& error) {
      if (error.status() != Status::unimplemented) throw;
      found_.push_back(error);
    }
  }
  void raise_all() const {
    if (found_.empty()) return;
    if (found_.size() == 1) throw found_.front();
    std::string sentences;
    for (const Error& error : found_) {
      const std::string op = error.place() ? join("op ", error.place()->id, " ") : "";
      sentences += join(sentences.empty() ? "" : "; ", op, error.what());
    }
    throw Error(Status::unimplemented, sentences);
  }

 private:
  std::vector<Error> found_;
};

// The inputs and outputs of the model, in its order.
struct ModelPorts {
  std::vector<ExportOptions::Port> inputs, outputs;
};

// Where the values of a graph's partitions are.
class ValuePlaces {
 public:
  ValuePlaces(const Graph& graph, const ModelPorts& ports, const ExportedWeights& weights) {
    for (const ValueIndex input : graph.inputs()) {
      const uint64_t id = graph.tensor(input).id;
      if (const std::optional<size_t> constant = weights.find(id)) places_[id] = {Value::Source::constant, *constant};
    }
    for (size_t i = 0; i < ports.inputs.size(); ++i) places_[ports.inputs[i].id] = {Value::Source::input, i};
    for (size_t i = 0; i < ports.outputs.size(); ++i) places_[ports.outputs[i].id] = {Value::Source::output, i};
  }

  Value read(uint64_t id, size_t partition) {
    const Value place = places_.at(id);
    if (place.source == Value::Source::arena) blocks_[place.index].last_step = partition;
    return place;
  }
  Value write(const LogicalTensor& tensor, size_t partition) {
    const auto [found, is_new] = places_.emplace(tensor.id, Value{Value::Source::arena, blocks_.size()});
    if (is_new) blocks_.push_back({tensor.byte_size(), partition, partition});
    return found->second;
  }
  // Replaces numbers of blocks by offsets. Returns the bytes of the arena.
  size_t finish(std::vector<ExportedModel::Partition>& partitions) const {
    const kernel::ArenaLayout layout = kernel::lay_out(blocks_, kAlignment);
    for (ExportedModel::Partition& partition : partitions) {
      for (auto* const values : {&partition.inputs, &partition.outputs}) {
        for (Value& value : *values)
          if (value.source == Value::Source::arena) value.index = layout.offsets[value.index];
      }
    }
    return layout.bytes;
  }

 private:
  std::map<uint64_t, Value> places_;
  std::vector<kernel::ArenaBlock> blocks_;
};

ExportedModel::Tensor exported(const Graph& graph, const ExportOptions::Port& port) {
  const LogicalTensor dense = made_dense(graph.tensor(*graph.find_value(port.id)));
  return {port.name, dense.dtype, *dense.shape, dense.strides};
}

// Compiles a graph's partitions, one after the other, and collects where their values are.
class ModelCompiler {
 public:
  ModelCompiler(const Graph& graph, const ModelPorts& ports, const ExportedWeights& weights, ModelExporter& exporter)
      : graph_(graph), exporter_(exporter), places_(graph, ports, weights) {
    for (const ExportOptions::Port& port : ports.inputs) model_.inputs.push_back(exported(graph, port));
    for (const ExportOptions::Port& port : ports.outputs) model_.outputs.push_back(exported(graph, port));
  }

  ExportedModel::Variant run(PartitionPolicy policy) {
    Refusals refusals;
    for (const Partition& partition : partition_graph(graph_, policy, exporter_.backend()))
      refusals.attempt([&] { add(partition); });
    refusals.raise_all();
    model_.arena_bytes = places_.finish(model_.partitions);
    return std::move(model_);
  }

 private:
  void add(const Partition& partition) {
    if (!partition.supported) throw Error(Status::unimplemented, partition.unsupported_reason);
    const PortTensors ports = known_ports(partition);
    const PlannedPartition planned = plan_partition(partition, ports.inputs, ports.outputs, exporter_.backend());
    const size_t number = model_.partitions.size();
    ExportedModel::Partition& exported = model_.partitions.emplace_back();
    for (const ValueIndex input : partition.inputs)
      exported.inputs.push_back(places_.read(partition.graph->tensor(input).id, number));
    for (size_t o = 0; o < partition.outputs.size(); ++o) {
      LogicalTensor output = planned.outputs[o];
      output.id = partition.graph->tensor(partition.outputs[o]).id;
      exported.outputs.push_back(places_.write(output, number));
    }
    exporter_.add(planned.plan);
  }

  const Graph& graph_;
  ModelExporter& exporter_;
  ValuePlaces places_;
  ExportedModel::Variant model_;
};

void require_exportable(const Graph& graph) {
  Refusals refusals;
  for (const Op& op : graph.ops())
    refusals.attempt([&] {
      if (op.kind == OpKind::Wildcard)
        throw Error(Status::unimplemented, place_of(op), "an op of unknown kind cannot be exported");
    });
  refusals.raise_all();
  for (const lamina::Value& value : graph.values()) {
    if (!value.tensor.has_full_shape())
      throw Error(Status::invalid_shape,
                  join("tensor ", value.tensor.id, " is ", describe(value.tensor), ", allowed is a known shape"));
  }
}

[[noreturn]] void fail(const LogicalTensor& tensor, const std::string& what) {
  throw Error(Status::invalid_arguments, join("tensor ", tensor.id, " ", what));
}

// The ports that the caller names, or those of the graph.
ModelPorts ports_of(const Graph& graph, const ExportOptions& options, const ExportedWeights& weights) {
  ModelPorts ports{options.inputs, options.outputs};
  if (ports.inputs.empty()) {
    for (const ValueIndex input : graph.inputs()) {
      const uint64_t id = graph.tensor(input).id;
      if (!weights.find(id)) ports.inputs.push_back({id, join(id)});
    }
  }
  if (ports.outputs.empty())
    for (const ValueIndex output : graph.outputs())
      ports.outputs.push_back({graph.tensor(output).id, join(graph.tensor(output).id)});
  return ports;
}

// That the ports are those of a graph, with the types of the first one.
void require_ports(const Graph& graph, const ModelPorts& ports, const Graph& first, const ExportedWeights& weights) {
  const auto require_all = [&](const std::vector<ExportOptions::Port>& of, const std::vector<ValueIndex>& values,
                               const char* kind) {
    std::set<uint64_t> seen;
    for (const ExportOptions::Port& port : of) {
      if (!seen.insert(port.id).second)
        throw Error(Status::invalid_arguments, join("tensor ", port.id, " is listed twice as an ", kind));
      const auto value = graph.find_value(port.id), original = first.find_value(port.id);
      if (!value || std::find(values.begin(), values.end(), *value) == values.end())
        throw Error(Status::invalid_arguments, join("tensor ", port.id, " is no ", kind, " of the graph"));
      if (graph.tensor(*value).dtype != first.tensor(*original).dtype)
        fail(first.tensor(*original), join("is ", describe(graph.tensor(*value)), " in another variant of the model"));
    }
  };
  const std::vector<ValueIndex> inputs = graph.inputs(), outputs = graph.outputs();
  require_all(ports.inputs, inputs, "input");
  require_all(ports.outputs, outputs, "output");
  for (const ValueIndex output : outputs)
    if (graph.value(output).producer.op < 0) fail(graph.tensor(output), "is an input and an output; allowed is one of them");
  for (const ValueIndex input : inputs) {
    const LogicalTensor& tensor = graph.tensor(input);
    const auto is_tensor = [&](const ExportOptions::Port& port) { return port.id == tensor.id; };
    const bool is_port = std::any_of(ports.inputs.begin(), ports.inputs.end(), is_tensor);
    if (!weights.find(tensor.id)) {
      if (!is_port) fail(tensor, "is neither an input of the model nor a constant with data");
      continue;
    }
    if (is_port) fail(tensor, "is an input of the model and a constant with data; allowed is one of them");
    const auto original = first.find_value(tensor.id);
    if (original && first.tensor(*original).shape != tensor.shape)
      fail(tensor, join("is part of the file, and is ", describe(tensor), " in another variant of the model"));
  }
}

// Only weights are constant. Other inputs may differ from run to run, also where the graph says that they do not.
Graph with_constants(Graph graph, const ExportedWeights& weights) {
  for (const ValueIndex input : graph.inputs()) {
    LogicalTensor tensor = graph.tensor(input);
    const bool is_constant = weights.find(tensor.id).has_value();
    if (!is_constant && tensor.property != PropertyType::constant) continue;
    tensor.property = is_constant ? PropertyType::constant : PropertyType::variable;
    graph.set_tensor(input, std::move(tensor));
  }
  return graph;
}

std::vector<uint64_t> ids_of(const std::vector<ExportOptions::Port>& ports) {
  std::vector<uint64_t> ids;
  for (const ExportOptions::Port& port : ports) ids.push_back(port.id);
  return ids;
}

// The first member of the file, with the weights.
class WeightsMember {
 public:
  explicit WeightsMember(const ExportedWeights& weights)
      : header_(safetensors_header(weights.tensors(), kAlignment)), parts_(weights.parts(header_)) {}

  void write(ZipWriter& zip) const { zip.add("weights.safetensors", parts_, crc32(parts_), kAlignment); }
  std::string digest() const {
    Sha256Stream hash;
    for (const std::string_view part : std::span(parts_).subspan(1)) hash.update(part);
    return hex_of(hash.finish());
  }

 private:
  std::string header_;
  std::vector<std::string_view> parts_;  // the header, then the data
};

// The model for one instruction set.
struct CompiledModel {
  ExportedModel model;
  ModelExporter::Program program;
};

// Compiles models, and computes what they say of the weights.
class ModelsCompiler {
 public:
  ModelsCompiler(const std::vector<Graph>& graphs, const ModelPorts& ports, const ExportedWeights& weights,
                 const WeightsMember& member, const ExportOptions& options)
      : graphs_(graphs), ports_(ports), weights_(weights), member_(member), options_(options) {}

  CompiledModel run(const std::string& isa) {
    const auto exporter = cpu_exporter(isa, options_.threads);
    ExportedModel model{weights_.constants(), weights_.bytes(), {}, {}};
    for (const Graph& graph : graphs_)
      model.variants.push_back(ModelCompiler(graph, ports_, weights_, *exporter).run(options_.policy));
    if (digest_.empty()) digest_ = member_.digest();
    model.weights_digest = digest_;
    std::vector<std::string_view> data;
    for (const StoredTensor& tensor : weights_.tensors()) data.push_back(tensor.data);
    ModelExporter::Program program = exporter->finish(model, data, options_.packs_weights);
    return {std::move(model), std::move(program)};
  }

 private:
  const std::vector<Graph>& graphs_;
  const ModelPorts& ports_;
  const ExportedWeights& weights_;
  const WeightsMember& member_;
  const ExportOptions& options_;
  std::string digest_;  // of the weights
};

}  // namespace

void export_model(std::span<const Graph> given, const ExportOptions& options, std::ostream& out) {
  if (given.empty()) throw Error(Status::invalid_arguments, "a model needs a graph");
  if (options.isas.empty()) throw Error(Status::invalid_arguments, "a model needs an instruction set");
  for (const Graph& graph : given) require_exportable(graph);
  const ExportedWeights weights(given, options.weights, kAlignment);
  const ModelPorts ports = ports_of(given.front(), options, weights);
  std::vector<Graph> graphs;
  for (const Graph& graph : given) {
    require_ports(graph, ports, given.front(), weights);
    graphs.push_back(with_constants(graph, weights));
  }
  const WeightsMember member(weights);
  const std::string graph_text = write_graph_json(graphs.front());
  ExportedTexts texts{.graph_digest = sha256_hex(graph_text),
                      .input_ids = ids_of(ports.inputs),
                      .output_ids = ids_of(ports.outputs),
                      .shared = weights.shared()};
  ZipWriter zip(out);
  ModelsCompiler compiler(graphs, ports, weights, member, options);
  // While another thread compiles for one instruction set, this one writes the weights, or the program for the set before.
  std::future<CompiledModel> next;
  const auto begin = [&](size_t i) {
    if (i < options.isas.size()) next = std::async(std::launch::async, [&, i] { return compiler.run(options.isas[i]); });
  };
  begin(0);
  member.write(zip);
  for (size_t i = 0; i < options.isas.size(); ++i) {
    const std::string& isa = options.isas[i];
    auto [model, program] = next.get();
    begin(i + 1);
    texts.model = std::move(model);
    texts.programs.push_back({isa, program.code.size(), sha256_hex(program.code), program.packed_weights.size()});
    zip.add("program/" + isa, program.code, kProgramAlignment);
    if (!program.packed_weights.empty()) zip.add("packed/" + isa, program.packed_weights, kAlignment);
  }
  zip.add("graph.json", graph_text, kAlignment);
  zip.add("meta.json", meta_json(texts), kAlignment);
  zip.finish();
}

}  // namespace lamina::compiler
