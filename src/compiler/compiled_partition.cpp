#include "compiler/compiled_partition.h"

#include <algorithm>

#include "compiler/ports.h"
#include "compiler/verbose.h"
#include "interface/per_thread.h"
#include "interface/status.h"

namespace lamina::compiler {

namespace {

// Data pointers in port order. Partitions of ordinary size use inline memory; larger ones use a thread-local array, which is
// kept.
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
  static std::vector<Pointer>& large() { return PerThread<PointerArray, std::vector<Pointer>>::get(); }
  Pointer* data() { return size_ > kInline ? large().data() : inline_; }

  size_t size_;
  Pointer inline_[kInline];
};

// Programs nearly always pass the tensors in port order, so that position is checked first.
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

// Whether two strides of one shape address the same elements: the stride of an axis of extent 1 is ignored.
bool same_strides(const LogicalTensor& given, const LogicalTensor& port) {
  for (size_t dim = 0; dim < port.strides.size(); ++dim) {
    if ((*port.shape)[dim] != 1 && given.strides[dim] != port.strides[dim]) return false;
  }
  return true;
}

// A tensor without a layout, such as any tensor of unknown shape, matches the compiled layout if that is dense.
bool same_layout(const LogicalTensor& given, const LogicalTensor& port) {
  if (!has_elements(port)) return true;
  if (given.has_strides()) return same_strides(given, port);
  return given.layout != LayoutType::opaque && is_dense(port);
}

[[noreturn]] void fail_bound(const std::string& label, std::string_view role, uint64_t id, const std::string& what) {
  throw Error(Status::invalid_arguments, join("execute of ", label, ": ", role, " ", id, " ", what));
}

void* checked_memory(const std::string& label, std::string_view role, const LogicalTensor& port, const BoundTensor* bound) {
  if (bound == nullptr) fail_bound(label, role, port.id, "is missing among the given tensors");
  const LogicalTensor& given = *bound->tensor;
  if (given.dtype != port.dtype || (given.has_full_shape() && given.shape != port.shape)) {
    fail_bound(label, role, port.id, join("is ", describe(given), ", compiled for ", describe(port)));
  }
  if (!same_layout(given, port)) {
    fail_bound(label, role, port.id, join("has strides ", describe(given.strides), ", compiled for ", describe(port.strides)));
  }
  if (bound->memory == nullptr && has_elements(port)) fail_bound(label, role, port.id, "has a null handle but has elements");
  return bound->memory;
}

}  // namespace

std::string label_of(const Partition& partition) {
  std::string kinds;
  for (const int op : partition.ops) {
    if (!kinds.empty()) kinds += " + ";
    kinds += name_of(partition.graph->ops()[static_cast<size_t>(op)].kind);
  }
  return "partition " + std::to_string(partition.id) + ": " + kinds;
}

CompiledPartition::Use::Use(const Executable& executable, const Allocator* allocator)
    : executable_(executable), allocator_(allocator == nullptr ? Allocator{} : *allocator) {
  executable_.begin_use(&allocator_);
}

CompiledPartition::Use::~Use() { executable_.end_use(&allocator_); }

CompiledPartition::CompiledPartition(const Partition& partition, SharedExecutable shared, double compile_ms, bool from_cache,
                                     const Allocator* allocator)
    : label_(label_of(partition)),
      inputs_(std::move(shared.inputs)),
      outputs_(std::move(shared.outputs)),
      executable_(std::move(shared.executable)),
      use_(*executable_, allocator),
      constants_(*executable_),
      compile_ms_(compile_ms),
      from_cache_(from_cache),
      computes_nothing_(std::none_of(outputs_.begin(), outputs_.end(), has_elements)) {
  for (size_t i = 0; i < inputs_.size(); ++i) inputs_[i].id = partition.graph->tensor(partition.inputs[i]).id;
  for (size_t i = 0; i < outputs_.size(); ++i) outputs_[i].id = partition.graph->tensor(partition.outputs[i]).id;
}

const LogicalTensor& CompiledPartition::port(uint64_t tensor_id) const {
  if (const LogicalTensor* input = find_by_id(inputs_, tensor_id)) return *input;
  if (const LogicalTensor* output = find_by_id(outputs_, tensor_id)) return *output;
  throw Error(Status::invalid_arguments, join(label_, ": tensor ", tensor_id, " is not a port; inputs: ", list_ids(inputs_),
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
  ExecutionContext with_constants = context;
  with_constants.constants = constants_.get();
  executable_->execute(with_constants, sources.span(), destinations.span());
}

}  // namespace lamina::compiler
