#include "lamina/overrides.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <unordered_map>
#include <unordered_set>

#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::driver {
namespace {

[[noreturn]] void fail(const char* option, const std::string& given, const std::string& why) {
  throw Error(Status::invalid_arguments, join(option, " ", given, ": ", why));
}

template <typename T>
std::optional<T> number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::vector<std::string> split(const std::string& text, char separator) {
  std::vector<std::string> parts;
  for (size_t start = 0; start <= text.size();) {
    const size_t end = std::min(text.find(separator, start), text.size());
    parts.push_back(text.substr(start, end - start));
    start = end + 1;
  }
  return parts;
}

// Splits "KEY:REST".
std::pair<std::string, std::string> split_key(const char* option, const std::string& given, const char* form) {
  const size_t colon = given.find(':');
  if (colon == std::string::npos || colon == 0) fail(option, given, join("allowed is ", form));
  return {given.substr(0, colon), given.substr(colon + 1)};
}

template <typename Visit>
void for_each_port(GraphDump& dump, const Visit& visit) {
  for (DumpedOp& op : dump.ops) {
    for (size_t i = 0; i < op.inputs.size(); ++i) visit(op, op.inputs[i], i, false);
    for (size_t i = 0; i < op.outputs.size(); ++i) visit(op, op.outputs[i], i, true);
  }
}

// ---- shapes

const DumpedOp* producer_of(const GraphDump& dump, uint64_t id) {
  for (const DumpedOp& op : dump.ops)
    for (const LogicalTensor& output : op.outputs)
      if (output.id == id) return &op;
  return nullptr;
}

Dims parse_shape(const std::string& given, const std::string& text) {
  Dims dims;
  if (text.empty()) return dims;
  for (const std::string& part : split(text, 'x')) {
    const auto dim = number<int64_t>(part);
    if (!dim || *dim < 0) fail("--set-shape", given, join("extent \"", part, "\" is not a number of 0 or more"));
    dims.push_back(*dim);
  }
  if (dims.size() > static_cast<size_t>(kMaxRank))
    fail("--set-shape", given, join("the rank is ", dims.size(), ", allowed is 0..", kMaxRank));
  return dims;
}

void set_shape(GraphDump& dump, const std::string& given) {
  const auto [key, text] = split_key("--set-shape", given, "ID:4x8");
  const auto id = number<uint64_t>(key);
  if (!id) fail("--set-shape", given, join("\"", key, "\" is not a tensor id"));
  if (const DumpedOp* op = producer_of(dump, *id))
    fail("--set-shape", given, join("tensor ", *id, " is produced by op ", op->id, "; allowed is an input of the graph"));
  const Dims shape = parse_shape(given, text);
  bool found = false;
  for_each_port(dump, [&](DumpedOp&, LogicalTensor& tensor, size_t, bool) {
    if (tensor.id != *id) return;
    found = true;
    tensor.shape = shape;
    tensor.layout = LayoutType::any;
    tensor = made_dense(std::move(tensor));
  });
  if (!found) fail("--set-shape", given, join("the graph has no tensor ", *id));
}

// Clears the shapes of produced tensors, so that they are inferred again from the graph inputs; outputs of ops without
// inference keep theirs.
void forget_inner_shapes(GraphDump& dump) {
  std::unordered_set<uint64_t> made;
  for (const DumpedOp& op : dump.ops)
    if (schema_of(op.kind).infer_shapes)
      for (const LogicalTensor& output : op.outputs) made.insert(output.id);
  for_each_port(dump, [&](DumpedOp&, LogicalTensor& tensor, size_t, bool) {
    if (!made.contains(tensor.id)) return;
    tensor.shape.reset();
    tensor.strides.clear();
  });
}

// ---- attributes

template <typename T>
std::vector<T> parse_list(const std::string& given, const std::string& text, const char* allowed) {
  std::vector<T> values;
  if (text.empty()) return values;
  for (const std::string& part : split(text, 'x')) {
    const auto value = number<T>(part);
    if (!value) fail("--set-attr", given, join("\"", part, "\" is not ", allowed));
    values.push_back(*value);
  }
  return values;
}

Attribute parse_attribute(const std::string& given, AttributeType type, const std::string& text) {
  switch (type) {
    case AttributeType::boolean:
      if (text == "true" || text == "1") return true;
      if (text == "false" || text == "0") return false;
      fail("--set-attr", given, join("\"", text, "\" is not a bool, allowed is true, false, 1, 0"));
    case AttributeType::s64:
      if (const auto value = number<int64_t>(text)) return *value;
      fail("--set-attr", given, join("\"", text, "\" is not an integer"));
    case AttributeType::f32:
      if (const auto value = number<double>(text)) return *value;
      fail("--set-attr", given, join("\"", text, "\" is not a number"));
    case AttributeType::s64_list: return parse_list<int64_t>(given, text, "an integer");
    case AttributeType::f32_list: return parse_list<float>(given, text, "a number");
    case AttributeType::f64:
    case AttributeType::string: break;
  }
  return text;
}

DumpedOp& op_called(GraphDump& dump, const std::string& given, const std::string& key) {
  const auto id = number<uint64_t>(key);
  for (DumpedOp& op : dump.ops)
    if (id && op.id == *id) return op;
  for (DumpedOp& op : dump.ops)
    if (op.name == key) return op;
  fail("--set-attr", given, join("the graph has no op with id or name \"", key, "\""));
}

void set_attribute(GraphDump& dump, const std::string& given) {
  const auto [key, rest] = split_key("--set-attr", given, "OP:NAME=VALUE");
  const size_t equals = rest.find('=');
  if (equals == std::string::npos || equals == 0) fail("--set-attr", given, "allowed is OP:NAME=VALUE");
  const std::string name = rest.substr(0, equals);
  DumpedOp& op = op_called(dump, given, key);
  const AttributeSpec* spec = schema_of(op.kind).find_attribute(name);
  if (spec == nullptr) {
    std::string known;
    for (const AttributeSpec& attribute : schema_of(op.kind).attributes) known += (known.empty() ? "" : ", ") + attribute.name;
    fail("--set-attr", given,
         join(name_of(op.kind), " has no attribute ", name, ", allowed is ", known.empty() ? "none" : known));
  }
  op.attributes.insert_or_assign(name, parse_attribute(given, spec->type, rest.substr(equals + 1)));
}

// ---- types

// The ports of the op on one side. Attributes that a dump does not give have their defaults, on which ports depend too.
std::vector<const PortSpec*> ports_of(const DumpedOp& op, bool is_output) {
  Op described;
  described.kind = op.kind;
  described.attributes = op.attributes;
  fill_defaults(described);
  const OpSchema& schema = schema_of(op.kind);
  return is_output ? existing_outputs(schema, described.attributes) : existing_inputs(schema, described.attributes);
}

bool allows(const OpSchema& schema, const PortSpec& port, DataType type) {
  for (const TypeVariable& variable : schema.types)
    if (variable.name == port.type)
      return std::find(variable.allowed.begin(), variable.allowed.end(), type) != variable.allowed.end();
  return true;
}

bool is_wide_float(DataType type) {
  return type == DataType::f32 || type == DataType::f16 || type == DataType::bf16 || type == DataType::f64;
}

// Tensors that --set-dtype all:TYPE does not change. Parameters, such as gamma, beta or a norm's statistics, stay f32 for every
// type of the data but f64. Bits that are read as another type keep their number.
std::unordered_set<uint64_t> tensors_to_keep(const GraphDump& dump, DataType type) {
  std::unordered_set<uint64_t> keep;
  const auto visit = [&](const DumpedOp& op, const std::vector<LogicalTensor>& tensors, bool is_output) {
    const std::vector<const PortSpec*> ports = ports_of(op, is_output);
    const bool has_bits = schema_of(op.kind).nest == LoopNest::reinterpreted;
    for (size_t i = 0; i < tensors.size(); ++i) {
      const PortSpec* const port = ports.empty() ? nullptr : ports[std::min(i, ports.size() - 1)];
      const bool is_bound =
          port != nullptr && (!allows(schema_of(op.kind), *port, type) || (type != DataType::f64 && is_parameter(port->role)));
      if (is_bound || has_bits || !is_wide_float(tensors[i].dtype)) keep.insert(tensors[i].id);
    }
  };
  for (const DumpedOp& op : dump.ops) {
    visit(op, op.inputs, false);
    visit(op, op.outputs, true);
  }
  return keep;
}

// Removes TypeCasts between equal types: their consumers read the input instead.
void drop_idle_casts(GraphDump& dump) {
  std::unordered_map<uint64_t, LogicalTensor> replaced;
  std::unordered_set<uint64_t> read;
  for (const DumpedOp& op : dump.ops)
    for (const LogicalTensor& input : op.inputs) read.insert(input.id);
  std::erase_if(dump.ops, [&](const DumpedOp& op) {
    const bool idle = schema_of(op.kind).traits.converts && op.inputs.size() == 1 && op.outputs.size() == 1 &&
                      op.inputs[0].dtype == op.outputs[0].dtype && read.contains(op.outputs[0].id);
    if (idle) replaced.emplace(op.outputs[0].id, op.inputs[0]);
    return idle;
  });
  for (DumpedOp& op : dump.ops)
    for (LogicalTensor& input : op.inputs)
      for (size_t steps = 0; steps <= replaced.size(); ++steps) {
        const auto found = replaced.find(input.id);
        if (found == replaced.end()) break;
        input = found->second;
      }
}

void set_dtype(GraphDump& dump, const std::string& given) {
  const auto [key, name] = split_key("--set-dtype", given, "ID:bf16 or all:bf16");
  const auto type = data_type_from_name(name);
  if (!type || *type == DataType::undef) fail("--set-dtype", given, join("\"", name, "\" is not a type"));
  if (key == "all") {
    if (!is_wide_float(*type)) fail("--set-dtype", given, "allowed for all tensors is f32, bf16, f16, f64");
    const auto keep = tensors_to_keep(dump, *type);
    for_each_port(dump, [&](DumpedOp&, LogicalTensor& tensor, size_t, bool) {
      if (!keep.contains(tensor.id)) tensor.dtype = *type;
    });
    drop_idle_casts(dump);
    return;
  }
  const auto id = number<uint64_t>(key);
  if (!id) fail("--set-dtype", given, join("\"", key, "\" is neither a tensor id nor all"));
  bool found = false;
  for_each_port(dump, [&](DumpedOp&, LogicalTensor& tensor, size_t, bool) {
    if (tensor.id != *id) return;
    found = true;
    tensor.dtype = *type;
  });
  if (!found) fail("--set-dtype", given, join("the graph has no tensor ", *id));
}

}  // namespace

std::vector<std::string> split_at_commas(const std::vector<std::string>& given) {
  std::vector<std::string> parts;
  for (const std::string& text : given)
    for (const std::string& part : split(text, ','))
      if (!part.empty()) parts.push_back(part);
  return parts;
}

void apply_overrides(GraphDump& dump, const Overrides& overrides) {
  for (const std::string& given : overrides.shapes) set_shape(dump, given);
  for (const std::string& given : overrides.attributes) set_attribute(dump, given);
  for (const std::string& given : overrides.dtypes) set_dtype(dump, given);
  if (!overrides.shapes.empty() || !overrides.attributes.empty()) forget_inner_shapes(dump);
}

}  // namespace lamina::driver
