#include "interface/schema_text.h"

#include <algorithm>
#include <limits>

#include "interface/status.h"

namespace lamina {
namespace {

// A value that a check with anything to say refuses: its refusal names what is allowed.
Attribute worst_value(AttributeType type) {
  switch (type) {
    case AttributeType::f32: return std::numeric_limits<float>::quiet_NaN();
    case AttributeType::f32_list: return std::vector<float>{std::numeric_limits<float>::quiet_NaN()};
    case AttributeType::s64: return std::numeric_limits<int64_t>::min();
    case AttributeType::s64_list: return std::vector<int64_t>{std::numeric_limits<int64_t>::min()};
    case AttributeType::boolean: return false;
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

}  // namespace

std::string presence_text(const PortSpec& port) {
  std::string text = port.presence == Presence::required   ? "required"
                     : port.presence == Presence::variadic ? "one or more"
                                                           : "may be left out";
  if (port.exists_when) text += "; only when " + port.exists_when->text;
  if (port.required_when) text += "; required when " + port.required_when->text;
  return text;
}

std::string default_text(const AttributeSpec& attribute) {
  if (attribute.required) return "required";
  return attribute.default_value ? "default " + to_string(*attribute.default_value) : "may be left out";
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
