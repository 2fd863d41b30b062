// The texts in the file of an exported model.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backends/exported_model.h"
#include "interface/logical_tensor.h"

namespace lamina::compiler {

// A tensor in a safetensors file; `offset`: in its data.
struct StoredTensor {
  std::string name;
  DataType dtype = DataType::undef;
  Dims shape;
  size_t offset = 0;
  std::string_view data;
};

// What the file begins with, filled up with spaces so that the data are aligned. Types that safetensors lacks are bytes: U8,
// with the number of bytes as shape.
std::string safetensors_header(std::span<const StoredTensor> tensors, size_t alignment);

struct ExportedTexts {
  struct Program {
    std::string isa;
    size_t bytes;
    std::string digest;
    size_t packed_bytes;  // of its packed weights
  };
  std::string graph_digest;
  std::vector<uint64_t> input_ids, output_ids;  // in the graph
  std::map<uint64_t, std::string> shared = {};  // ids of constants that are stored under another name
  ExportedModel model = {};
  std::vector<Program> programs = {};
};

std::string meta_json(const ExportedTexts& texts);

}  // namespace lamina::compiler
