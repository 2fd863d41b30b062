#include "names.h"

namespace lamina::python {

std::string text_of(const std::function<lamina_status_t(lamina_text_f, void*)>& writer) {
  std::string text;
  error::wrap_c_api(writer(
      [](void* user, const char* begin, size_t length) { static_cast<std::string*>(user)->assign(begin, length); }, &text));
  return text;
}

const std::map<std::string, int>& op_kinds() {
  static const std::map<std::string, int> values = {
#define LAMINA_OP(kind, value) {#kind, value},
#include "graph/op_kinds.def"
  };
  return values;
}

graph::op::kind kind_from_name(const std::string& name) {
  const auto found = op_kinds().find(name);
  if (found == op_kinds().end())
    throw error(lamina_invalid_arguments, "there is no op kind \"" + name + "\"; lamina.op_kinds() lists the kinds");
  return static_cast<graph::op::kind>(found->second);
}

namespace {

const std::map<std::string, Attribute>& attributes() {
  static const std::map<std::string, Attribute> values = {
#define LAMINA_ATTRIBUTE(name, value, type) {#name, {graph::op::attr::name, AttributeType::type}},
#include "graph/attribute_kinds.def"
  };
  return values;
}

}  // namespace

Attribute attribute_from_name(const std::string& name) {
  const auto found = attributes().find(name);
  if (found == attributes().end()) throw error(lamina_invalid_arguments, "there is no attribute \"" + name + "\"");
  return found->second;
}

const char* status_name(lamina_status_t status) {
  switch (status) {
    case lamina_out_of_memory: return "out_of_memory";
    case lamina_invalid_arguments: return "invalid_arguments";
    case lamina_unimplemented: return "unimplemented";
    case lamina_invalid_graph: return "invalid_graph";
    case lamina_invalid_graph_op: return "invalid_graph_op";
    case lamina_invalid_shape: return "invalid_shape";
    case lamina_invalid_data_type: return "invalid_data_type";
    case lamina_index_out_of_range: return "index_out_of_range";
    default: return "runtime_error";
  }
}

}  // namespace lamina::python
