#include "compiler/compile_cache.h"

#include <algorithm>
#include <cstdlib>
#include <type_traits>
#include <utility>

namespace lamina::compiler {

namespace {

// Appends values so that two keys are equal only if their inputs are equal: data of variable length are preceded by their
// length.
class KeyWriter {
 public:
  KeyWriter(std::string& key, const Graph& graph) : key_(key), graph_(graph) { key_.clear(); }

  template <typename T>
    requires std::is_arithmetic_v<T> || std::is_enum_v<T>
  void add(const T& value) {
    key_.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void add(std::string_view text) {
    add(text.size());
    key_.append(text);
  }
  template <typename T>
  void add(const std::vector<T>& values) {
    add(values.size());
    key_.append(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
  }
  void add(const Attributes& attributes) {
    add(attributes.size());
    for (const auto& [name, value] : attributes) {
      add(std::string_view(name));
      add(value.index());
      std::visit([this](const auto& held) { add(held); }, value);
    }
  }
  void add(const LogicalTensor& tensor) {
    add(tensor.dtype);
    add(tensor.layout);
    add(tensor.property);
    add(tensor.shape.has_value());
    if (tensor.shape) add(*tensor.shape);
    add(tensor.strides);
  }
  // A value of the graph: its number in order of appearance and, at its first appearance, its properties.
  void add_value(ValueIndex index) {
    if (index == kNoValue) return add(SIZE_MAX);
    const auto [number, is_new] = number_of(index);
    add(number);
    if (!is_new) return;
    const Value& value = graph_.value(index);
    add(value.tensor);
    add(value.constant.has_value());
    if (value.constant) add(*value.constant);
  }
  void add_values(const std::vector<ValueIndex>& values) {
    add(values.size());
    for (const ValueIndex value : values) add_value(value);
  }
  // The tensors that the user passes, with the positions of their ports.
  void add_given(std::span<const LogicalTensor> tensors, const std::vector<ValueIndex>& ports) {
    add(tensors.size());
    for (const LogicalTensor& tensor : tensors) {
      const auto port =
          std::find_if(ports.begin(), ports.end(), [&](ValueIndex value) { return graph_.tensor(value).id == tensor.id; });
      add(static_cast<size_t>(port - ports.begin()));
      add(tensor);
    }
  }

 private:
  // Few values are searched linearly; for many, a map keeps their numbers.
  std::pair<size_t, bool> number_of(ValueIndex index) {
    constexpr size_t kFew = 32;
    if (seen_.size() < kFew) {
      const auto found = std::find(seen_.begin(), seen_.end(), index);
      const bool is_new = found == seen_.end();
      const auto number = static_cast<size_t>(found - seen_.begin());
      if (is_new) seen_.push_back(index);
      return {number, is_new};
    }
    if (numbers_.empty())
      for (size_t i = 0; i < seen_.size(); ++i) numbers_.emplace(seen_[i], i);
    const auto [place, is_new] = numbers_.try_emplace(index, numbers_.size());
    return {place->second, is_new};
  }

  std::string& key_;
  const Graph& graph_;
  std::vector<ValueIndex> seen_;
  std::unordered_map<ValueIndex, size_t> numbers_;  // empty while `seen_` is short
};

}  // namespace

void write_compile_key(std::string& key, const Backend& backend, const Partition& partition,
                       std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs) {
  const Graph& graph = *partition.graph;
  KeyWriter writer(key, graph);
  writer.add(backend.name());
  writer.add(backend.threads());
  const char* const isa = std::getenv("LAMINA_MAX_ISA");
  writer.add(std::string_view(isa == nullptr ? "" : isa));
  writer.add(graph.fpmath_mode);
  writer.add(graph.fpmath_apply_to_int);
  for (const int position : partition.ops) {
    const Op& op = graph.ops()[static_cast<size_t>(position)];
    writer.add(op.kind);
    writer.add(op.attributes);
    writer.add_values(op.inputs);
    writer.add_values(op.outputs);
  }
  writer.add_values(partition.inputs);
  writer.add_values(partition.outputs);
  writer.add_given(inputs, partition.inputs);
  writer.add_given(outputs, partition.outputs);
}

CompileCache& CompileCache::instance() {
  static CompileCache& cache = *new CompileCache;  // never destroyed: executables may be in use while statics are torn down
  return cache;
}

std::optional<SharedExecutable> CompileCache::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const auto found = entries_.find(key);
  if (found == entries_.end()) return std::nullopt;
  found->second.used = ++uses_;
  return found->second.shared;
}

void CompileCache::insert(const std::string& key, SharedExecutable executable) {
  const std::lock_guard lock(mutex_);
  entries_.insert_or_assign(key, Entry{std::move(executable), ++uses_});
  drop_oldest_beyond(capacity_);
}

void CompileCache::drop_oldest_beyond(size_t entries) {
  while (entries_.size() > entries) {
    entries_.erase(std::min_element(entries_.begin(), entries_.end(),
                                    [](const auto& a, const auto& b) { return a.second.used < b.second.used; }));
  }
}

void CompileCache::clear() {
  const std::lock_guard lock(mutex_);
  entries_.clear();
}

void CompileCache::set_capacity(size_t capacity) {
  const std::lock_guard lock(mutex_);
  capacity_ = capacity;
  drop_oldest_beyond(capacity_);
}

size_t CompileCache::capacity() {
  const std::lock_guard lock(mutex_);
  return capacity_;
}

size_t CompileCache::size() {
  const std::lock_guard lock(mutex_);
  return entries_.size();
}

}  // namespace lamina::compiler
