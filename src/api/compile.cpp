#include "api/compile.h"

#include <algorithm>
#include <chrono>

#include "api/verbose.h"
#include "interface/status.h"
#include "passes/pipeline.h"

namespace lamina::api {

namespace {

std::string label_of(const Partition& partition) {
  std::string kinds;
  for (const int op : partition.ops) {
    if (!kinds.empty()) kinds += " + ";
    kinds += name_of(partition.graph->ops()[static_cast<size_t>(op)].kind);
  }
  return "partition " + std::to_string(partition.id) + ": " + kinds;
}

std::string list_ids(std::span<const LogicalTensor> tensors) {
  std::string ids;
  for (const LogicalTensor& tensor : tensors) ids += join(ids.empty() ? "" : ", ", tensor.id);
  return ids.empty() ? "none" : ids;
}

std::vector<LogicalTensor> port_tensors(const Partition& partition, const std::vector<ValueIndex>& ports) {
  std::vector<LogicalTensor> tensors;
  for (const ValueIndex port : ports) tensors.push_back(partition.graph->tensor(port));
  return tensors;
}

const LogicalTensor* find_by_id(std::span<const LogicalTensor> tensors, uint64_t id) {
  const auto found = std::find_if(tensors.begin(), tensors.end(), [id](const LogicalTensor& t) { return t.id == id; });
  return found == tensors.end() ? nullptr : &*found;
}

bool shapes_agree(const LogicalTensor& given, const LogicalTensor& known) {
  if (!given.shape || !known.shape) return true;
  if (given.rank() != known.rank()) return false;
  for (size_t dim = 0; dim < given.shape->size(); ++dim) {
    const int64_t a = (*given.shape)[dim], b = (*known.shape)[dim];
    if (a != b && a != kUnknownDim && b != kUnknownDim) return false;
  }
  return true;
}

// What the partition knows of a port and what compile was given for it, as one description.
LogicalTensor merge_port(const LogicalTensor& known, const LogicalTensor& given, const std::string& where) {
  if (given.dtype != known.dtype && given.dtype != DataType::undef && known.dtype != DataType::undef) {
    throw Error(Status::invalid_data_type,
                join(where, " has type ", name_of(given.dtype), ", the graph says ", name_of(known.dtype)));
  }
  if (!shapes_agree(given, known)) {
    throw Error(Status::invalid_shape, join(where, " is ", describe(given), ", the graph says ", describe(known)));
  }
  if (given.layout == LayoutType::opaque) {
    throw Error(Status::invalid_arguments,
                where + " has layout opaque, which lamina never makes; allowed: strided, any, undef");
  }
  LogicalTensor merged = known;
  if (merged.dtype == DataType::undef) merged.dtype = given.dtype;
  if (given.shape) merged.shape = given.shape;
  if (given.layout != LayoutType::undef) {
    merged.layout = given.layout;
    merged.strides = given.strides;
  }
  return merged;
}

// Layouts that the user left open are dense, row-major.
void settle_layout(LogicalTensor& tensor) {
  if (!tensor.has_full_shape() || tensor.has_strides()) return;
  tensor.layout = LayoutType::strided;
  tensor.strides = dense_strides(*tensor.shape);
}

// The ports' descriptions in port order.
std::vector<LogicalTensor> match_ports(const std::string& label, std::string_view role, std::span<const LogicalTensor> known,
                                       std::span<const LogicalTensor> given) {
  std::vector<LogicalTensor> matched;
  for (const LogicalTensor& port : known) {
    const LogicalTensor* tensor = find_by_id(given, port.id);
    if (tensor == nullptr) {
      throw Error(Status::invalid_arguments, join("compile of ", label, ": no logical tensor for ", role, " port ", port.id,
                                                  "; given: ", list_ids(given), "; needed: ", list_ids(known)));
    }
    matched.push_back(merge_port(port, *tensor, join("compile of ", label, ": ", role, " ", port.id)));
    settle_layout(matched.back());
  }
  return matched;
}

void require_known_shapes(const std::string& label, std::span<const LogicalTensor> inputs) {
  for (const LogicalTensor& input : inputs) {
    if (input.has_full_shape()) continue;
    throw Error(Status::invalid_shape, join("compile of ", label, ": input ", input.id, " is ", describe(input),
                                            "; every input needs a known shape here"));
  }
}

void refuse_unknown_outputs(const std::string& label, std::span<const LogicalTensor> known,
                            std::span<const LogicalTensor> given) {
  for (const LogicalTensor& tensor : given) {
    if (find_by_id(known, tensor.id) != nullptr) continue;
    throw Error(Status::invalid_arguments,
                join("compile of ", label, ": tensor ", tensor.id, " is no output port; output ports: ", list_ids(known)));
  }
}

// Every value of the subgraph gets strides; shapes must be known by now.
void settle_subgraph(const std::string& label, Graph& graph) {
  for (size_t index = 0; index < graph.values().size(); ++index) {
    LogicalTensor tensor = graph.values()[index].tensor;
    if (!tensor.has_full_shape()) {
      throw Error(Status::invalid_shape, join("compile of ", label, ": tensor ", tensor.id, " is still ", describe(tensor),
                                              " after inference; give its shape"));
    }
    settle_layout(tensor);
    graph.set_tensor(static_cast<ValueIndex>(index), std::move(tensor));
  }
}

std::vector<LogicalTensor> tensors_of(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::vector<LogicalTensor> tensors;
  for (const ValueIndex value : values) tensors.push_back(graph.tensor(value));
  return tensors;
}

// ---- execution

// Data pointers in port order. Inline memory serves partitions of ordinary size; larger ones use an array of the thread, which
// grows once.
template <typename Pointer>
class PointerArray {
 public:
  explicit PointerArray(size_t size) : size_(size) {
    if (size > kInline && large().size() < size) large().resize(size);
  }
  Pointer& operator[](size_t index) { return data()[index]; }
  std::span<Pointer> span() { return {data(), size_}; }

 private:
  static constexpr size_t kInline = 32;
  static std::vector<Pointer>& large() {
    thread_local std::vector<Pointer> array;
    return array;
  }
  Pointer* data() { return size_ > kInline ? large().data() : inline_; }

  size_t size_;
  Pointer inline_[kInline];
};

// Programs give the tensors in port order nearly always: that position is looked at first.
const BoundTensor* find_bound(std::span<const BoundTensor> given, uint64_t id, size_t likely) {
  if (likely < given.size() && given[likely].tensor->id == id) return &given[likely];
  for (const BoundTensor& bound : given) {
    if (bound.tensor->id == id) return &bound;
  }
  return nullptr;
}

bool has_elements(const LogicalTensor& tensor) {
  return std::find(tensor.shape->begin(), tensor.shape->end(), 0) == tensor.shape->end();
}

// Strides of equal shapes that address the same elements: the stride of an extent of 1 is never used.
bool same_strides(const LogicalTensor& given, const LogicalTensor& port) {
  for (size_t dim = 0; dim < port.strides.size(); ++dim) {
    if ((*port.shape)[dim] != 1 && given.strides[dim] != port.strides[dim]) return false;
  }
  return true;
}

// A layout that was left open stands for the one that compile chose, if that is the dense one.
bool same_layout(const LogicalTensor& given, const LogicalTensor& port) {
  if (!has_elements(port)) return true;
  if (given.has_strides()) return same_strides(given, port);
  return given.layout != LayoutType::opaque && is_dense(port);
}

[[noreturn]] void fail_bound(const std::string& label, std::string_view role, uint64_t id, const std::string& what) {
  throw Error(Status::invalid_arguments, join("execute of ", label, ": ", role, " ", id, " ", what));
}

void* checked_memory(const std::string& label, std::string_view role, const LogicalTensor& port, const BoundTensor* bound) {
  if (bound == nullptr) fail_bound(label, role, port.id, "is missing among the tensors given");
  const LogicalTensor& given = *bound->tensor;
  if (given.dtype != port.dtype || given.shape != port.shape) {
    fail_bound(label, role, port.id, join("is ", describe(given), ", compiled for ", describe(port)));
  }
  if (!same_layout(given, port)) {
    fail_bound(label, role, port.id, join("has strides ", describe(given.strides), ", compiled for ", describe(port.strides)));
  }
  if (bound->memory == nullptr && has_elements(port)) fail_bound(label, role, port.id, "has a null handle but has elements");
  return bound->memory;
}

}  // namespace

CompiledPartition::CompiledPartition(const Partition& partition, SharedExecutable shared)
    : label_(label_of(partition)),
      inputs_(std::move(shared.inputs)),
      outputs_(std::move(shared.outputs)),
      executable_(std::move(shared.executable)),
      computes_nothing_(std::none_of(outputs_.begin(), outputs_.end(), has_elements)) {
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i].id = partition.graph->tensor(partition.inputs[i]).id;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].id = partition.graph->tensor(partition.outputs[i]).id;
}

// The cache may keep the executable; its memory must not outlive the engine whose allocator gave it.
CompiledPartition::~CompiledPartition() { executable_->release_idle_memory(); }

const LogicalTensor& CompiledPartition::port(uint64_t tensor_id) const {
  if (const LogicalTensor* input = find_by_id(inputs_, tensor_id)) return *input;
  if (const LogicalTensor* output = find_by_id(outputs_, tensor_id)) return *output;
  throw Error(Status::invalid_arguments, join(label_, ": tensor ", tensor_id, " is no port; inputs: ", list_ids(inputs_),
                                              "; outputs: ", list_ids(outputs_)));
}

std::vector<std::pair<uint64_t, uint64_t>> CompiledPartition::inplace_ports() const {
  std::vector<std::pair<uint64_t, uint64_t>> ids;
  for (const auto& [input, output] : executable_->inplace_ports()) ids.emplace_back(inputs_[input].id, outputs_[output].id);
  return ids;
}

bool CompiledPartition::may_share(uint64_t input_id, uint64_t output_id) const {
  const LogicalTensor* const input = find_by_id(inputs_, input_id);
  const LogicalTensor* const output = find_by_id(outputs_, output_id);
  if (input == nullptr || output == nullptr) return false;
  return executable_->may_share(static_cast<size_t>(input - inputs_.data()), static_cast<size_t>(output - outputs_.data()));
}

void CompiledPartition::execute(const ExecutionContext& context, std::span<const BoundTensor> inputs,
                                std::span<const BoundTensor> outputs) const {
  PointerArray<const void*> sources(inputs_.size());
  PointerArray<void*> destinations(outputs_.size());
  for (size_t i = 0; i < inputs_.size(); ++i) {
    sources[i] = checked_memory(label_, "input", inputs_[i], find_bound(inputs, inputs_[i].id, i));
  }
  for (size_t i = 0; i < outputs_.size(); ++i) {
    destinations[i] = checked_memory(label_, "output", outputs_[i], find_bound(outputs, outputs_[i].id, i));
  }
  if (computes_nothing_) return;
  const ExecutionTimer timer(*this);
  executable_->execute(context, sources.span(), destinations.span());
}

namespace {

SharedExecutable compile_anew(const Partition& partition, std::span<const LogicalTensor> inputs,
                              std::span<const LogicalTensor> outputs, const Backend& backend) {
  const std::string label = label_of(partition);
  if (!partition.supported) {
    throw Error(Status::unimplemented, join("compile of ", label, ": not supported: ", partition.unsupported_reason));
  }
  const auto known_outputs = port_tensors(partition, partition.outputs);
  refuse_unknown_outputs(label, known_outputs, outputs);
  const auto given_inputs = match_ports(label, "input", port_tensors(partition, partition.inputs), inputs);
  const auto given_outputs = match_ports(label, "output", known_outputs, outputs);
  require_known_shapes(label, given_inputs);

  Subgraph subgraph = extract_subgraph(partition, given_inputs, given_outputs);
  settle_subgraph(label, subgraph.graph);
  dump_subgraph(subgraph.graph, partition.id);
  return {tensors_of(subgraph.graph, subgraph.inputs), tensors_of(subgraph.graph, subgraph.outputs),
          backend.compile(subgraph.graph, subgraph.inputs, subgraph.outputs)};
}

}  // namespace

std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                                           std::span<const LogicalTensor> outputs, const Backend& backend) {
  const auto start = std::chrono::steady_clock::now();
  thread_local std::string key;
  const bool may_share = partition.supported && backend.shares_executables() && !dumps_subgraphs();
  std::optional<SharedExecutable> shared;
  if (may_share) {
    write_compile_key(key, backend, partition, inputs, outputs);
    shared = CompileCache::instance().find(key);
  }
  const bool found = shared.has_value();
  if (!found) {
    shared = compile_anew(partition, inputs, outputs, backend);
    if (may_share) CompileCache::instance().keep(key, *shared);
  }
  auto compiled = std::make_unique<CompiledPartition>(partition, std::move(*shared));
  compiled->from_cache_ = found || compiled->info().from_cache;
  compiled->compile_ms_ = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  report_compile(*compiled);
  return compiled;
}

}  // namespace lamina::api
