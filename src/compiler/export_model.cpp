#include "compiler/export_model.h"

#include <algorithm>
#include <cstring>
#include <list>
#include <map>
#include <optional>
#include <utility>

#include "backends/cache/sha256.h"
#include "backends/exported_model.h"
#include "compiler/compile.h"
#include "compiler/exported_texts.h"
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

// The constants of a model: given data, and inputs whose elements all have one known value.
class Weights {
 public:
  Weights(const Graph& graph, const ExportOptions& options) {
    for (const ValueIndex input : graph.inputs()) {
      const LogicalTensor tensor = made_dense(graph.tensor(input));
      const auto given = options.weights.find(tensor.id);
      if (given != options.weights.end())
        add(tensor, given->second);
      else if (const auto& value = graph.values()[static_cast<size_t>(input)].constant)
        add(tensor, filled(tensor, *value));
    }
  }

  std::optional<size_t> find(uint64_t id) const {
    const auto found = numbers_.find(id);
    return found == numbers_.end() ? std::nullopt : std::optional(found->second);
  }
  std::vector<ExportedModel::Constant> constants() const {
    std::vector<ExportedModel::Constant> all;
    for (const StoredTensor& tensor : tensors_) all.push_back({tensor.name, tensor.offset, tensor.data.size()});
    return all;
  }
  // The safetensors file, and the data in it, in parts.
  std::vector<std::string_view> parts(const std::string& header) const {
    static const std::string zeros(kAlignment, '\0');
    std::vector<std::string_view> parts{header};
    for (const StoredTensor& tensor : tensors_) {
      parts.push_back(tensor.data);
      parts.push_back(std::string_view(zeros).substr(0, padded(tensor.data.size()) - tensor.data.size()));
    }
    return parts;
  }
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  size_t bytes() const { return bytes_; }

 private:
  static size_t padded(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

  void add(const LogicalTensor& tensor, std::string_view data) {
    if (data.size() != static_cast<size_t>(tensor.byte_size()))
      throw Error(Status::invalid_arguments, join("the data of constant ", tensor.id, " have ", data.size(), " bytes, ",
                                                  describe(tensor), " has ", tensor.byte_size()));
    numbers_[tensor.id] = tensors_.size();
    tensors_.push_back({join(tensor.id), tensor.dtype, *tensor.shape, bytes_, data});
    bytes_ += padded(data.size());
  }
  std::string_view filled(const LogicalTensor& tensor, double value) {
    std::string& data = filled_.emplace_back(static_cast<size_t>(tensor.byte_size()), '\0');
    for (int64_t i = 0; i < tensor.span(); ++i) store_from_double(tensor.dtype, data.data(), i, value);
    return data;
  }

  std::map<uint64_t, size_t> numbers_;
  std::vector<StoredTensor> tensors_;
  std::list<std::string> filled_;
  size_t bytes_ = 0;
};

// Where the values of a graph's partitions are.
class ValuePlaces {
 public:
  ValuePlaces(const Graph& graph, const Weights& weights) {
    for (const ValueIndex input : graph.inputs()) {
      const uint64_t id = graph.tensor(input).id;
      const std::optional<size_t> constant = weights.find(id);
      places_[id] = constant ? Value{Value::Source::constant, *constant} : Value{Value::Source::input, inputs_++};
    }
    for (const ValueIndex output : graph.outputs()) places_[graph.tensor(output).id] = {Value::Source::output, outputs_++};
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
  size_t inputs_ = 0, outputs_ = 0;
};

ExportedModel::Tensor exported(const LogicalTensor& tensor) {
  const LogicalTensor dense = made_dense(tensor);
  return {join(tensor.id), tensor.dtype, *dense.shape, dense.strides};
}

// Compiles a graph's partitions, one after the other, and collects where their values are.
class ModelCompiler {
 public:
  ModelCompiler(const Graph& graph, const Weights& weights, ModelExporter& exporter)
      : graph_(graph), exporter_(exporter), places_(graph, weights) {
    for (const ValueIndex input : graph.inputs())
      if (!weights.find(graph.tensor(input).id)) model_.inputs.push_back(exported(graph.tensor(input)));
    for (const ValueIndex output : graph.outputs()) model_.outputs.push_back(exported(graph.tensor(output)));
  }

  ExportedModel::Variant run(PartitionPolicy policy) {
    for (const Partition& partition : partition_graph(graph_, policy, exporter_.backend())) add(partition);
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
  for (const Op& op : graph.ops())
    if (op.kind == OpKind::Wildcard)
      throw Error(Status::unimplemented, place_of(op), "an op of unknown kind cannot be exported");
  for (const lamina::Value& value : graph.values()) {
    if (!value.tensor.has_full_shape())
      throw Error(Status::invalid_shape,
                  join("tensor ", value.tensor.id, " is ", describe(value.tensor), ", allowed is a known shape"));
  }
}

// The graphs of a model's variants have the same inputs and outputs, and weights of one shape.
void require_same_ports(const Graph& first, const Graph& other, const Weights& weights) {
  const auto fail = [](const LogicalTensor& tensor, const std::string& what) {
    throw Error(Status::invalid_arguments, join("tensor ", tensor.id, " ", what, " in another variant of the model"));
  };
  for (const auto ports : {&Graph::inputs, &Graph::outputs}) {
    const std::vector<ValueIndex> values = (first.*ports)(), others = (other.*ports)();
    if (values.size() != others.size()) throw Error(Status::invalid_arguments, "the variants of the model have other ports");
    for (size_t i = 0; i < values.size(); ++i) {
      const LogicalTensor &tensor = first.tensor(values[i]), &same = other.tensor(others[i]);
      if (tensor.id != same.id || tensor.dtype != same.dtype) fail(tensor, join("is ", describe(same)));
      if (weights.find(tensor.id) && tensor.shape != same.shape)
        fail(tensor, join("is part of the file, and is ", describe(same)));
    }
  }
}

// Only weights are constant. Other inputs may differ from run to run, also where the graph says that they do not.
Graph with_constants(Graph graph, const Weights& weights) {
  for (const ValueIndex input : graph.inputs()) {
    LogicalTensor tensor = graph.tensor(input);
    const bool is_constant = weights.find(tensor.id).has_value();
    if (!is_constant && tensor.property != PropertyType::constant) continue;
    tensor.property = is_constant ? PropertyType::constant : PropertyType::variable;
    graph.set_tensor(input, std::move(tensor));
  }
  return graph;
}

std::string digest_of(std::span<const std::string_view> parts) {
  Sha256Stream hash;
  for (const std::string_view part : parts) hash.update(part);
  return hex_of(hash.finish());
}

}  // namespace

void export_model(std::span<const Graph> given, const ExportOptions& options, std::ostream& out) {
  if (given.empty()) throw Error(Status::invalid_arguments, "a model needs a graph");
  const Weights weights(given.front(), options);
  std::vector<Graph> graphs;
  for (const Graph& graph : given) {
    require_exportable(graph);
    require_same_ports(given.front(), graph, weights);
    graphs.push_back(with_constants(graph, weights));
  }
  const std::string header = safetensors_header(weights.tensors(), kAlignment);
  const std::vector<std::string_view> parts = weights.parts(header);
  const std::string graph_text = write_graph_json(graphs.front());
  ExportedTexts texts{.weights_digest = digest_of(std::span(parts).subspan(1)), .graph_digest = sha256_hex(graph_text)};
  ZipWriter zip(out);
  for (const std::string& isa : options.isas) {
    const auto exporter = cpu_exporter(isa, options.threads);
    texts.model = {weights.constants(), weights.bytes(), texts.weights_digest, {}};
    for (const Graph& graph : graphs)
      texts.model.variants.push_back(ModelCompiler(graph, weights, *exporter).run(options.policy));
    const std::string program = exporter->finish(texts.model);
    texts.programs.push_back({isa, program.size(), sha256_hex(program)});
    zip.add("program/" + isa, program, kProgramAlignment);
  }
  zip.add("weights.safetensors", parts, kAlignment);
  zip.add("graph.json", graph_text, kAlignment);
  zip.add("meta.json", meta_json(texts), kAlignment);
  zip.finish();
}

}  // namespace lamina::compiler
