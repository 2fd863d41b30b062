#include "interface/op.h"

#include <array>
#include <charconv>
#include <cmath>
#include <concepts>

#include "interface/older_names.h"

namespace lamina {
namespace {

std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(const std::string& value) { return '"' + value + '"'; }

// The shortest text that converts back to the same value.
template <std::floating_point Real>
std::string text_of(Real value) {
  std::array<char, 32> text{};
  const auto result = std::to_chars(text.data(), text.data() + text.size(), value);
  return {text.data(), result.ptr};
}

template <typename T>
std::string text_of(const std::vector<T>& values) {
  std::string text = "[";
  for (size_t i = 0; i < values.size(); ++i) text += (i > 0 ? ", " : "") + text_of(values[i]);
  return text + "]";
}

}  // namespace

std::string_view name_of(OpKind kind) {
  switch (kind) {
#define LAMINA_OP(kind, value) \
  case OpKind::kind: return #kind;
#include "graph/op_kinds.def"
  }
  throw Error(Status::invalid_graph_op, join("op kind ", static_cast<int>(kind), " is not known"));
}

const std::vector<OpKind>& all_op_kinds() {
  static const std::vector<OpKind> kinds{
#define LAMINA_OP(kind, value) OpKind::kind,
#include "graph/op_kinds.def"
  };
  return kinds;
}

std::optional<OpKind> op_kind_from_name(std::string_view name) {
  static const std::map<std::string_view, OpKind> kinds = [] {
    std::map<std::string_view, OpKind> by_name;
    for (OpKind kind : all_op_kinds()) by_name.emplace(name_of(kind), kind);
    return by_name;
  }();
  const auto found = kinds.find(name);
  return found == kinds.end() ? kind_of_older_name(name) : std::optional(found->second);
}

std::string_view name_of(AttributeType type) {
  switch (type) {
    case AttributeType::boolean: return "bool";
    case AttributeType::s64: return "s64";
    case AttributeType::s64_list: return "s64[]";
    case AttributeType::f32: return "f32";
    case AttributeType::f32_list: return "f32[]";
    case AttributeType::string: return "string";
    case AttributeType::f64: return "f64";
  }
  return "unknown";
}

std::string to_string(const Attribute& value) {
  return std::visit([](const auto& alternative) { return text_of(alternative); }, value);
}

Attribute number_attribute(double value, bool has_f64_tensor) {
  const auto rounded = static_cast<float>(value);
  if (has_f64_tensor && static_cast<double>(rounded) != value && !std::isnan(value)) return value;
  return rounded;
}

std::optional<double> number_of(const Attribute& value) {
  if (const auto* single = std::get_if<float>(&value)) return static_cast<double>(*single);
  if (const auto* wide = std::get_if<double>(&value)) return *wide;
  return std::nullopt;
}

double Op::number(std::string_view attribute_name) const {
  const auto found = attributes.find(attribute_name);
  const std::optional<double> value = found == attributes.end() ? std::nullopt : number_of(found->second);
  if (!value) fail_attribute_access(*this, attribute_name);
  return *value;
}

bool Op::has_attribute(std::string_view attribute_name) const { return attributes.find(attribute_name) != attributes.end(); }

std::string describe(const Origin& origin) { return join(name_of(origin.kind), " \"", origin.name, '"'); }

std::string describe(const Op& op) { return join(name_of(op.kind), " \"", op.name, '"'); }

OpPlace place_of(const Op& op, std::string part) { return {op.id, op.kind, op.name, std::move(part)}; }

void fail_attribute_access(const Op& op, std::string_view attribute_name) {
  const auto found = op.attributes.find(attribute_name);
  const std::string state = found == op.attributes.end() ? "is absent" : "has another type: " + to_string(found->second);
  LAMINA_CHECK(false, join(describe(op), ": attribute ", attribute_name, " ", state));
  throw Error(Status::runtime_error, "unreachable");
}

}  // namespace lamina
