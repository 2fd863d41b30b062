#include "interface/schema_text.h"

#include <algorithm>
#include <limits>

#include "interface/status.h"

namespace lamina {
namespace {

// A value that every check rejects: the rejection text then describes what is allowed.
Attribute worst_value(AttributeType type) {
  switch (type) {
    case AttributeType::f32: return std::numeric_limits<float>::quiet_NaN();
    case AttributeType::f32_list: return std::vector<float>{std::numeric_limits<float>::quiet_NaN()};
    case AttributeType::s64: return std::numeric_limits<int64_t>::min();
    case AttributeType::s64_list: return std::vector<int64_t>{std::numeric_limits<int64_t>::min()};
    case AttributeType::boolean: return false;
    case AttributeType::f64:
    case AttributeType::string: break;
  }
  return std::string{};
}

bool is_legal(const OpSchema& schema, const std::vector<DataType>& types) {
  if (!schema.check_types) return true;
  return schema
      .check_types([&](std::string_view variable) {
        for (size_t i = 0; i < schema.types.size(); ++i)
          if (schema.types[i].name == variable) return types[i];
        return DataType::undef;
      })
      .empty();
}

// The domain of statistics follows from the data that they are computed from.
std::string held_text(const OpSchema& schema, const PortSpec& port) {
  if (const DomainRule* rule = domain_of(port)) return rule->text;
  if (port.role != PortRole::mean && port.role != PortRole::variance) return "";
  for (const PortSpec& other : schema.inputs)
    if (other.role == PortRole::normalized) return join(port.role == PortRole::mean ? "mean" : "variance", " of ", other.name);
  return "";
}

}  // namespace

std::string data_text(const OpSchema& schema, const std::function<std::string(const std::string&)>& name) {
  std::string text;
  for (const PortSpec& port : schema.inputs)
    if (const std::string held = held_text(schema, port); !held.empty())
      text += join(text.empty() ? "" : "; ", name(port.name), ' ', held);
  return text;
}

std::string accuracy_text(const OpSchema& schema) {
  if (schema.op_class == OpClass::marker || schema.op_class == OpClass::opaque) return "";
  std::string text = join("in f32 within ", error_of(schema),
                          " of the value or of its tensor's root mean square, before it is rounded to its type");
  if (schema.traits.contracts)
    text = "the error grows with the root of the number of products that an element sums";
  else if (error_of(schema) == 0)
    text = "exact, except for the rounding to its type";
  const auto sums_rows = [](const PortSpec& port) { return port.role == PortRole::affine_gradient; };
  if (std::any_of(schema.outputs.begin(), schema.outputs.end(), sums_rows))
    text += join("; gradients of gamma and beta ", kColumnSumError, " more");
  if (schema.traits.jumps) text += "; near a jump or a pole a small change of an input changes the result much";
  return text;
}

std::string range_text(const OpSchema& schema) {
  if (!schema.traits.squares) return "";
  const size_t squared = port_with_role(schema.inputs, {}, PortRole::normalized);
  return join("magnitudes of ", schema.inputs[squared == SIZE_MAX ? 0 : squared].name, " up to ", kLargestSquared,
              " in f32 and bf16, in rows of up to ", kRowOfSquares, " elements, and up to ", kLargestSquaredF64,
              " in f64; beyond them a row's sum of squares may overflow to inf, and a quotient by its root is 0");
}

std::string presence_text(const PortSpec& port) {
  std::string text = port.presence == Presence::required   ? "required"
                     : port.presence == Presence::variadic ? "one or more"
                                                           : "optional";
  if (port.exists_when) text += "; only when " + port.exists_when->text;
  if (port.required_when) text += "; required when " + port.required_when->text;
  return text;
}

std::string default_text(const AttributeSpec& attribute) {
  if (attribute.required) return "required";
  return attribute.default_value ? "default " + to_string(*attribute.default_value) : "optional";
}

std::string allowed_text(const AttributeSpec& attribute) {
  std::string words;
  for (const std::string& word : attribute.allowed) words += (words.empty() ? "one of " : ", ") + word;
  if (!words.empty() || !attribute.check) return words;
  return attribute.check(worst_value(attribute.type));
}

std::vector<std::vector<DataType>> legal_types(const OpSchema& schema) {
  std::vector<std::vector<DataType>> combinations{{}};
  for (const TypeVariable& variable : schema.types) {
    std::vector<std::vector<DataType>> longer;
    for (const std::vector<DataType>& combination : combinations) {
      for (const DataType type : variable.allowed) {
        longer.push_back(combination);
        longer.back().push_back(type);
      }
    }
    combinations = std::move(longer);
  }
  std::erase_if(combinations, [&](const std::vector<DataType>& types) { return !is_legal(schema, types); });
  return combinations;
}

}  // namespace lamina
