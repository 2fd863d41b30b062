// The smallest valid op of a kind, made from its schema. Generated tests start from it and invalidate one property.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "support/op_builder.h"

namespace lamina::testing {

inline Attribute legal_value(const AttributeSpec& spec) {
  if (spec.default_value) return *spec.default_value;
  switch (spec.type) {
    case AttributeType::boolean: return true;
    case AttributeType::s64: return int64_t{1};
    case AttributeType::s64_list: return std::vector<int64_t>{1, 1};
    case AttributeType::f32: return 0.5F;
    case AttributeType::f64: return 0.5;
    case AttributeType::f32_list: return std::vector<float>{1.0F};
    case AttributeType::string: return spec.allowed.empty() ? std::string("x") : spec.allowed.front();
  }
  return true;
}

inline Attributes legal_attributes(const OpSchema& schema) {
  Attributes attributes;
  for (const AttributeSpec& spec : schema.attributes)
    if (spec.required) attributes[spec.name] = legal_value(spec);
  // Attributes that depend on each other or on the shape: axes of a reduction, sizes of an interpolation, a permutation.
  if (schema.find_attribute("keep_dims") != nullptr) attributes["axes"] = std::vector<int64_t>{0};
  if (schema.kind == OpKind::Interpolate || schema.kind == OpKind::InterpolateBackward)
    attributes["sizes"] = std::vector<int64_t>{4, 4};
  if (schema.kind == OpKind::StaticTranspose) attributes["order"] = std::vector<int64_t>{1, 0};
  return attributes;
}

using TypeAssignment = std::map<std::string, DataType>;

// Returns every combination of allowed types, whether or not the schema accepts the combination.
inline std::vector<TypeAssignment> all_assignments(const OpSchema& schema) {
  std::vector<TypeAssignment> assignments{{}};
  for (const TypeVariable& variable : schema.types) {
    std::vector<TypeAssignment> longer;
    for (const TypeAssignment& assignment : assignments)
      for (DataType type : variable.allowed) {
        longer.push_back(assignment);
        longer.back()[variable.name] = type;
      }
    assignments = std::move(longer);
  }
  return assignments;
}

inline bool is_legal(const OpSchema& schema, const TypeAssignment& assignment) {
  if (!schema.check_types) return true;
  return schema.check_types([&](std::string_view name) { return assignment.at(std::string(name)); }).empty();
}

// Returns an op of unknown ranks with every port that exists for `attributes` (without `optional_ports`: only the required
// ones).
inline OpBuilder op_with_types(OpKind kind, const TypeAssignment& assignment, const Attributes& attributes,
                               bool optional_ports = true) {
  const OpSchema& schema = schema_of(kind);
  OpBuilder builder(kind);
  for (const auto& [name, value] : attributes) builder.attr(name, value);
  Op filled{0, kind, "", attributes, {}, {}};
  fill_defaults(filled);
  const auto type = [&](const PortSpec* port) { return port->type == "any" ? DataType::f32 : assignment.at(port->type); };
  const bool axes_by_attribute = schema.find_attribute("keep_dims") != nullptr;
  for (const PortSpec* port : existing_inputs(schema, filled.attributes)) {
    if (axes_by_attribute && port->name == "axes") continue;
    if (optional_ports || port->presence != Presence::optional) builder.input(port->name, type(port));
  }
  for (const PortSpec* port : existing_outputs(schema, filled.attributes)) {
    const bool is_first = port == existing_outputs(schema, filled.attributes).front();  // some ops need at least one output
    if (optional_ports || port->presence != Presence::optional || is_first) builder.output(port->name, type(port));
  }
  return builder;
}

inline TypeAssignment first_legal(const OpSchema& schema) {
  for (const TypeAssignment& assignment : all_assignments(schema))
    if (is_legal(schema, assignment)) return assignment;
  return {};
}

inline OpBuilder a_valid_op(OpKind kind, bool optional_ports = true) {
  const OpSchema& schema = schema_of(kind);
  return op_with_types(kind, first_legal(schema), legal_attributes(schema), optional_ports);
}

}  // namespace lamina::testing
