#include "runtime/exported_graph.h"

#include <cstdlib>
#include <cstring>
#include <new>
#include <sstream>
#include <utility>

#include "backends/cpu/backend.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/default_primitive_library.h"
#include "backends/exported_model.h"
#include "compiler/compile.h"
#include "interface/status.h"
#include "lamina/device_tensors.h"
#include "passes/pipeline.h"

namespace lamina::testing {

namespace {

constexpr size_t kLine = 64;

std::unique_ptr<void, void (*)(void*)> aligned_memory(size_t bytes) {
  void* const memory = std::aligned_alloc(kLine, (bytes + kLine) / kLine * kLine);
  if (memory == nullptr) throw std::bad_alloc();
  return {memory, std::free};
}

}  // namespace

ModelBytes::ModelBytes(const std::string& text) : memory_(aligned_memory(text.size())), size_(text.size()) {
  std::memcpy(memory_.get(), text.data(), text.size());
}

std::shared_ptr<const Backend> backend_like_exported() {
  static const std::shared_ptr<const Backend> backend = [] {
    cpu::Machine machine = cpu::host_machine();
    cpu::Instructions& instructions = machine.instructions;
    instructions.rounds_to_bf16 = instructions.multiplies_bf16_pairs = instructions.has_bf16_tiles = false;
    instructions.computes_in_f16 = false;
    return cpu::make_backend(machine, cpu::exported_primitive_library());
  }();
  return backend;
}

ModelBytes exported(std::span<const Graph> graphs, const compiler::ExportOptions& options) {
  std::ostringstream out;
  compiler::export_model(graphs, options, out);
  return ModelBytes(std::move(out).str());
}

ExportedGraph::ExportedGraph(Graph graph, std::vector<std::string> isas, bool packs, PartitionPolicy policy)
    : graph_(std::move(graph)) {
  for (const ValueIndex input : graph_.inputs())
    buffers_[graph_.tensor(input).id] = std::make_shared<driver::Buffer>(graph_.tensor(input));
  driver::fill_inputs(graph_, graph_.inputs(), 1, buffers_);
  compiler::ExportOptions options{
      .isas = isas.empty() ? cpu_isas_here() : std::move(isas), .packs_weights = packs, .policy = policy};
  options.weights = weights();
  file_ = std::make_unique<const ModelBytes>(exported(std::span(&graph_, 1), options));
}

std::map<uint64_t, std::string_view> ExportedGraph::weights() const {
  std::map<uint64_t, std::string_view> weights;
  for (const ValueIndex input : graph_.inputs()) {
    const LogicalTensor& tensor = graph_.tensor(input);
    if (tensor.property != PropertyType::constant) continue;
    const driver::Buffer& buffer = *buffers_.at(tensor.id);
    weights[tensor.id] = {static_cast<const char*>(buffer.data()), static_cast<size_t>(buffer.tensor().byte_size())};
  }
  return weights;
}

const driver::Buffers& ExportedGraph::expected() {
  if (!results_.empty()) return results_;
  results_ = buffers_;
  for (const Partition& partition : partition_graph(graph_, PartitionPolicy::fusion, *backend_)) {
    const auto compiled = compiler::compile_partition(partition, *backend_);
    std::vector<std::shared_ptr<driver::Buffer>> sources, destinations;
    for (const LogicalTensor& tensor : compiled->inputs()) sources.push_back(results_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled->outputs())
      destinations.push_back(results_[tensor.id] = std::make_shared<driver::Buffer>(tensor));
    const driver::DeviceTensors tensors(*backend_, sources, destinations);
    driver::Execution(*compiled, tensors).run();
  }
  return results_;
}

std::string ExportedGraph::difference(const runtime::model& model, const Run& run) {
  std::vector<std::unique_ptr<void, void (*)(void*)>> memory;
  const auto placed = [&](const runtime::tensor& tensor, const driver::Buffer& buffer) {
    const auto shift = run.shift * static_cast<size_t>(bytes_of(buffer.tensor().dtype, 2)) / 2;
    memory.push_back(aligned_memory(static_cast<size_t>(buffer.tensor().byte_size()) + shift));
    runtime::tensor bound = tensor.with(static_cast<char*>(memory.back().get()) + shift);
    bound.shape = *buffer.tensor().shape, bound.strides = buffer.tensor().strides;
    return bound;
  };
  const auto id_of = [](const runtime::tensor& tensor) { return std::stoull(tensor.name); };
  std::vector<runtime::tensor> inputs, outputs;
  for (const runtime::tensor& tensor : model.inputs()) {
    const driver::Buffer& buffer = *buffers_.at(id_of(tensor));
    inputs.push_back(placed(tensor, buffer));
    std::memcpy(inputs.back().data, buffer.data(), static_cast<size_t>(buffer.tensor().byte_size()));
  }
  for (const runtime::tensor& tensor : model.outputs()) {
    const driver::Buffer& buffer = *expected().at(id_of(tensor));
    outputs.push_back(placed(tensor, buffer));
    std::memset(outputs.back().data, 0, static_cast<size_t>(buffer.tensor().byte_size()));
  }
  model.run(inputs, outputs, {run.threads, run.pool});
  for (const runtime::tensor& tensor : outputs) {
    const driver::Buffer& buffer = *expected().at(id_of(tensor));
    const auto bytes = static_cast<size_t>(buffer.tensor().byte_size());
    if (std::memcmp(tensor.data, buffer.data(), bytes) != 0) return join("output ", tensor.name, " has other bits");
  }
  return "";
}

}  // namespace lamina::testing
