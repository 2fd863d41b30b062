#include "compiler/exported_texts.h"

#include "interface/json/quoted.h"
#include "interface/status.h"

namespace lamina::compiler {

namespace {

using json::quoted;

// safetensors' names; "" if it has none.
std::string_view name_in_safetensors(DataType dtype) {
  switch (dtype) {
    case DataType::f64: return "F64";
    case DataType::f32: return "F32";
    case DataType::f16: return "F16";
    case DataType::bf16: return "BF16";
    case DataType::s64: return "I64";
    case DataType::s32: return "I32";
    case DataType::s16: return "I16";
    case DataType::s8: return "I8";
    case DataType::u64: return "U64";
    case DataType::u32: return "U32";
    case DataType::u16: return "U16";
    case DataType::u8: return "U8";
    case DataType::boolean: return "BOOL";
    default: return "";
  }
}

std::string list_of(const Dims& dims) {
  std::string text = "[";
  for (const int64_t dim : dims) text += join(text.size() > 1 ? ", " : "", dim);
  return text + "]";
}

std::string tensor_json(const ExportedModel::Tensor& tensor, uint64_t id) {
  return join("{\"name\": ", quoted(tensor.name), ", \"id\": ", id, ", \"dtype\": ", quoted(name_of(tensor.dtype)),
              ", \"shape\": ", list_of(tensor.shape), ", \"strides\": ", list_of(tensor.strides), "}");
}

std::string tensors_json(std::string_view key, const std::vector<ExportedModel::Tensor>& tensors,
                         const std::vector<uint64_t>& ids) {
  std::string list;
  for (size_t i = 0; i < tensors.size(); ++i) list += join(i == 0 ? "" : ",\n       ", tensor_json(tensors[i], ids[i]));
  return join(quoted(key), ": [", list, "]");
}

// "key": [ITEM, ...], a line each.
template <typename Items, typename Text>
std::string array_json(std::string_view key, const Items& items, const Text& text) {
  std::string lines;
  for (const auto& item : items) lines += join(lines.empty() ? "\n    " : ",\n    ", text(item));
  return join("  ", quoted(key), ": [", lines, lines.empty() ? "]" : "\n  ]");
}

std::string shared_json(const std::map<uint64_t, std::string>& shared) {
  std::string list;
  for (const auto& [id, name] : shared) list += join(list.empty() ? "" : ", ", quoted(join(id)), ": ", quoted(name));
  return "{" + list + "}";
}

}  // namespace

// Readers of safetensors accept no gaps, so padding is a tensor too.
std::string safetensors_header(std::span<const StoredTensor> tensors, size_t alignment) {
  std::string text = "{";
  for (const StoredTensor& tensor : tensors) {
    const size_t end = tensor.offset + tensor.data.size(), padding = (alignment - end % alignment) % alignment;
    const std::string_view known = name_in_safetensors(tensor.dtype);
    const bool is_dense = !known.empty() && static_cast<int64_t>(tensor.data.size()) ==
                                                bytes_of(tensor.dtype, checked_product(tensor.shape, "a constant"));
    const Dims shape = is_dense ? tensor.shape : Dims{static_cast<int64_t>(tensor.data.size())};
    text += join(text.size() > 1 ? ", " : "", quoted(tensor.name), ": {\"dtype\": ", quoted(is_dense ? known : "U8"),
                 ", \"shape\": ", list_of(shape), ", \"data_offsets\": [", tensor.offset, ", ", end, "]}");
    if (padding > 0)
      text += join(", \"padding.", tensor.name, "\": {\"dtype\": \"U8\", \"shape\": [", padding, "], \"data_offsets\": [", end,
                   ", ", end + padding, "]}");
  }
  text += "}";
  constexpr size_t kLengthBytes = 8;
  while ((kLengthBytes + text.size()) % alignment != 0) text += ' ';
  std::string length;
  for (size_t i = 0; i < kLengthBytes; ++i) length.push_back(static_cast<char>(text.size() >> (8 * i)));
  return length + text;
}

std::string meta_json(const ExportedTexts& texts) {
  const ExportedModel& model = texts.model;
  const auto program = [](const ExportedTexts::Program& of) {
    return join("{\"isa\": ", quoted(of.isa), ", \"bytes\": ", of.bytes, ", \"sha256\": ", quoted(of.digest),
                ", \"packed_bytes\": ", of.packed_bytes, "}");
  };
  const auto variant = [&](const ExportedModel::Variant& of) {
    return join("{", tensors_json("inputs", of.inputs, texts.input_ids), ",\n     ",
                tensors_json("outputs", of.outputs, texts.output_ids), "}");
  };
  return join("{\n  \"format\": \"lamina model\",\n  \"version\": 1,\n", array_json("variants", model.variants, variant), ",\n",
              array_json("programs", texts.programs, program), ",\n  \"weights\": {\"bytes\": ", model.weights_bytes,
              ", \"sha256\": ", quoted(model.weights_digest), ", \"shared\": ", shared_json(texts.shared),
              "},\n  \"graph\": {\"sha256\": ", quoted(texts.graph_digest), "}\n}\n");
}

}  // namespace lamina::compiler
