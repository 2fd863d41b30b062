// The constants of an exported model: data that the caller gives, and inputs whose elements all have one known value.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "backends/exported_model.h"
#include "compiler/exported_texts.h"
#include "interface/graph.h"

namespace lamina::compiler {

class ExportedWeights {
 public:
  // `given`: memory by tensor id, in the tensor's strides. The same memory, or an id in several graphs, is one constant.
  // Throws Error(invalid_arguments): an id that no graph has as an input, data of another size, different tensors of one id.
  ExportedWeights(std::span<const Graph> graphs, const std::map<uint64_t, std::string_view>& given, size_t alignment);

  std::optional<size_t> find(uint64_t id) const;
  std::vector<ExportedModel::Constant> constants() const;
  // Ids of inputs whose data are stored once, under the name of another input.
  std::map<uint64_t, std::string> shared() const;
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  // The safetensors file: `header`, and the data in it, in parts.
  std::vector<std::string_view> parts(const std::string& header) const;
  size_t bytes() const { return bytes_; }

 private:
  void add(const LogicalTensor& tensor, std::string_view data);
  std::string_view filled(const LogicalTensor& tensor, double value);
  size_t padded(size_t bytes) const { return (bytes + alignment_ - 1) / alignment_ * alignment_; }

  const size_t alignment_;
  std::map<uint64_t, size_t> numbers_;  // in tensors_, by tensor id
  std::map<std::pair<const char*, size_t>, size_t> places_;
  std::vector<StoredTensor> tensors_;
  std::list<std::string> filled_;
  const std::string zeros_;
  size_t bytes_ = 0;
};

}  // namespace lamina::compiler
