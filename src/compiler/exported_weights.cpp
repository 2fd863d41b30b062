#include "compiler/exported_weights.h"

#include <algorithm>
#include <numeric>

#include "interface/status.h"

namespace lamina::compiler {

namespace {

// The dims in the order of memory, for a tensor whose strides are those of a dense one with permuted dims. Otherwise the shape.
Dims dims_in_memory(const LogicalTensor& tensor) {
  std::vector<size_t> order(tensor.shape->size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  Dims dims, strides;
  for (const size_t dim : order) dims.push_back((*tensor.shape)[dim]), strides.push_back(tensor.strides[dim]);
  return strides == dense_strides(dims) ? dims : *tensor.shape;
}

}  // namespace

ExportedWeights::ExportedWeights(std::span<const Graph> graphs, const std::map<uint64_t, std::string_view>& given,
                                 size_t alignment)
    : alignment_(alignment), zeros_(alignment, '\0') {
  for (const Graph& graph : graphs) {
    for (const ValueIndex input : graph.inputs()) {
      const LogicalTensor tensor = made_dense(graph.tensor(input));
      const auto data = given.find(tensor.id);
      if (data != given.end())
        add(tensor, data->second);
      else if (const auto& value = graph.value(input).constant)
        add(tensor, filled(tensor, *value));
    }
  }
  for (const auto& [id, data] : given)
    if (!find(id)) throw Error(Status::invalid_arguments, join("the data of constant ", id, ": the graph has no such input"));
}

std::optional<size_t> ExportedWeights::find(uint64_t id) const {
  const auto found = numbers_.find(id);
  return found == numbers_.end() ? std::nullopt : std::optional(found->second);
}

std::vector<ExportedModel::Constant> ExportedWeights::constants() const {
  std::vector<ExportedModel::Constant> all;
  for (const StoredTensor& tensor : tensors_) all.push_back({tensor.name, tensor.offset, tensor.data.size()});
  return all;
}

std::map<uint64_t, std::string> ExportedWeights::shared() const {
  std::map<uint64_t, std::string> names;
  for (const auto& [id, number] : numbers_)
    if (tensors_[number].name != join(id)) names[id] = tensors_[number].name;
  return names;
}

std::vector<std::string_view> ExportedWeights::parts(const std::string& header) const {
  std::vector<std::string_view> parts{header};
  for (const StoredTensor& tensor : tensors_) {
    parts.push_back(tensor.data);
    parts.push_back(std::string_view(zeros_).substr(0, padded(tensor.data.size()) - tensor.data.size()));
  }
  return parts;
}

void ExportedWeights::add(const LogicalTensor& tensor, std::string_view data) {
  if (data.size() != static_cast<size_t>(tensor.byte_size()))
    throw Error(Status::invalid_arguments, join("the data of constant ", tensor.id, " have ", data.size(), " bytes, ",
                                                describe(tensor), " has ", tensor.byte_size()));
  const auto known = numbers_.find(tensor.id);
  if (known != numbers_.end() && tensors_[known->second].data == data) return;
  if (known != numbers_.end())
    throw Error(Status::invalid_arguments, join("constant ", tensor.id, " has other data in another variant of the model"));
  const auto [place, is_new] = places_.emplace(std::pair(data.data(), data.size()), tensors_.size());
  numbers_[tensor.id] = place->second;
  if (!is_new) return;
  tensors_.push_back({join(tensor.id), tensor.dtype, dims_in_memory(tensor), bytes_, data});
  bytes_ += padded(data.size());
}

std::string_view ExportedWeights::filled(const LogicalTensor& tensor, double value) {
  std::string& data = filled_.emplace_back(static_cast<size_t>(tensor.byte_size()), '\0');
  for (int64_t i = 0; i < tensor.span(); ++i) store_from_double(tensor.dtype, data.data(), i, value);
  return data;
}

}  // namespace lamina::compiler
