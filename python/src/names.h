// Python's names for enumerators of the C++ interface, and texts of the C interface as strings.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/lamina.hpp"
#include "graph/text.h"

namespace lamina::python {

// Calls `writer` and returns the text that the C interface writes.
std::string text_of(const std::function<lamina_status_t(lamina_text_f, void*)>& writer);

// Returns the text that a function of the C interface writes about an object: text_of(graph, &lamina_graph_graph_write_json).
template <typename Object, typename Handle>
std::string text_of(const Object& object, lamina_status_t (*write)(Handle, lamina_text_f, void*)) {
  return text_of([&](lamina_text_f writer, void* user) { return write(object.get(), writer, user); });
}

const std::map<std::string, int>& op_kinds();
graph::op::kind kind_from_name(const std::string& name);  // throws lamina::error if there is none

// The types of attribute values, with the names of graph/attribute_kinds.def.
enum class AttributeType { boolean, s64, s64_list, f32, f32_list, string };
struct Attribute {
  graph::op::attr attribute;
  AttributeType type;
};
Attribute attribute_from_name(const std::string& name);  // throws lamina::error if there is none

const char* status_name(lamina_status_t status);  // the status must be an error

// The value of `name` in `values`. For other names throws lamina::error, with a sentence that starts with `what` and lists
// the allowed names.
template <typename Enum>
Enum chosen(const std::string& name, const std::map<std::string, Enum>& values, const char* what) {
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  std::string names;
  for (const auto& [each, value] : values) names += (names.empty() ? "" : ", ") + each;
  throw error(lamina_invalid_arguments, std::string(what) + " is \"" + name + "\", allowed is one of " + names);
}

}  // namespace lamina::python
