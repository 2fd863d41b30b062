// Names that Python uses where the C++ interface has enumerations, and texts that the C interface writes as strings.
#pragma once

#include <functional>
#include <map>
#include <string>

#include "graph/lamina.hpp"
#include "graph/text.h"

namespace lamina::python {

// The text that `writer` has the C interface write.
std::string text_of(const std::function<lamina_status_t(lamina_text_f, void*)>& writer);

// The text that the C interface's `write` has of an object: text_of(graph, &lamina_graph_graph_write_json).
template <typename Object, typename Handle>
std::string text_of(const Object& object, lamina_status_t (*write)(Handle, lamina_text_f, void*)) {
  return text_of([&](lamina_text_f writer, void* user) { return write(object.get(), writer, user); });
}

const std::map<std::string, int>& op_kinds();
graph::op::kind kind_from_name(const std::string& name);  // throws lamina::error where there is none

// The types that values of attributes have; names are those of graph/attribute_kinds.def.
enum class AttributeType { boolean, s64, s64_list, f32, f32_list, string };
struct Attribute {
  graph::op::attr attribute;
  AttributeType type;
};
Attribute attribute_from_name(const std::string& name);  // throws lamina::error where there is none

const char* status_name(lamina_status_t status);  // of a status that is an error

// What `name` stands for among `values`; where it is none of them throws lamina::error, which begins with `what` and lists
// them.
template <typename Enum>
Enum chosen(const std::string& name, const std::map<std::string, Enum>& values, const char* what) {
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  std::string names;
  for (const auto& [each, value] : values) names += (names.empty() ? "" : ", ") + each;
  throw error(lamina_invalid_arguments, std::string(what) + " is \"" + name + "\", allowed is one of " + names);
}

}  // namespace lamina::python
