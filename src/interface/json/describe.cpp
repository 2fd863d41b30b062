#include "interface/json/describe.h"

#include "interface/json/tree.h"
#include "interface/schema_text.h"

namespace lamina {
namespace {

using json::Tree;

Tree ports_to_json(const std::vector<PortSpec>& ports) {
  Tree list = Tree::list();
  for (const PortSpec& port : ports)
    list.push_back(
        Tree::object({{"name", port.name}, {"type", port.type}, {"given", presence_text(port)}, {"meaning", port.meaning}}));
  return list;
}

Tree op_to_json(const Partition& partition, size_t index) {
  const Op& op = partition.graph->op(partition.ops[index]);
  Tree reasons = Tree::list();
  if (index < partition.reasons.size())
    for (const Reason& reason : partition.reasons[index])
      reasons.push_back(Tree::object({{"code", reason.code}, {"text", reason.text}}));
  return Tree::object({{"id", op.id}, {"kind", name_of(op.kind)}, {"name", op.name}, {"reasons", reasons}});
}

}  // namespace

std::string json_object(const std::vector<std::pair<std::string, JsonField>>& fields) {
  Tree object = Tree::object();
  for (const auto& [name, field] : fields) std::visit([&, &key = name](const auto& value) { object.add(key, value); }, field);
  return object.text(true);
}

std::string schema_to_json(const OpSchema& schema) {
  Tree attributes = Tree::list();
  for (const AttributeSpec& attribute : schema.attributes)
    attributes.push_back(Tree::object({{"name", attribute.name},
                                       {"type", name_of(attribute.type)},
                                       {"given", default_text(attribute)},
                                       {"allowed", allowed_text(attribute)},
                                       {"meaning", attribute.meaning}}));
  Tree types = Tree::object();
  for (const TypeVariable& variable : schema.types) {
    Tree allowed = Tree::list();
    for (const DataType type : variable.allowed) allowed.push_back(name_of(type));
    types.add(variable.name, std::move(allowed));
  }
  const Tree told = Tree::object({{"kind", name_of(schema.kind)},
                                  {"class", name_of(schema.op_class)},
                                  {"formula", schema.formula},
                                  {"inputs", ports_to_json(schema.inputs)},
                                  {"outputs", ports_to_json(schema.outputs)},
                                  {"attributes", attributes},
                                  {"types", types}});
  return told.text(true);
}

std::string partition_to_json(const Partition& partition) {
  Tree told = Tree::object({{"supported", partition.supported}});
  if (!partition.supported) told.add("unsupported_reason", partition.unsupported_reason);
  Tree ops = Tree::list();
  for (size_t i = 0; i < partition.ops.size(); ++i) ops.push_back(op_to_json(partition, i));
  told.add("ops", std::move(ops));
  return told.text(true);
}

}  // namespace lamina
