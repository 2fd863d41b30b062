#include "interface/json/describe.h"

#include <nlohmann/json.hpp>

#include "interface/schema_text.h"

namespace lamina {
namespace {

using Json = nlohmann::ordered_json;

Json ports_to_json(const std::vector<PortSpec>& ports) {
  Json list = Json::array();
  for (const PortSpec& port : ports)
    list.push_back({{"name", port.name}, {"type", port.type}, {"given", presence_text(port)}, {"meaning", port.meaning}});
  return list;
}

Json op_to_json(const Partition& partition, size_t index) {
  const Op& op = partition.graph->op(partition.ops[index]);
  Json reasons = Json::array();
  if (index < partition.reasons.size())
    for (const Reason& reason : partition.reasons[index]) reasons.push_back({{"code", reason.code}, {"text", reason.text}});
  return {{"id", op.id}, {"kind", name_of(op.kind)}, {"name", op.name}, {"reasons", reasons}};
}

}  // namespace

std::string json_object(const std::vector<std::pair<std::string, JsonField>>& fields) {
  Json json = Json::object();
  for (const auto& [name, field] : fields) std::visit([&, &key = name](const auto& value) { json[key] = value; }, field);
  return json.dump(1);
}

std::string schema_to_json(const OpSchema& schema) {
  Json attributes = Json::array();
  for (const AttributeSpec& attribute : schema.attributes)
    attributes.push_back({{"name", attribute.name},
                          {"type", name_of(attribute.type)},
                          {"given", default_text(attribute)},
                          {"allowed", allowed_text(attribute)},
                          {"meaning", attribute.meaning}});
  Json types = Json::object();
  for (const TypeVariable& variable : schema.types) {
    types[variable.name] = Json::array();
    for (const DataType type : variable.allowed) types[variable.name].push_back(name_of(type));
  }
  const Json json = {{"kind", name_of(schema.kind)},
                     {"class", name_of(schema.op_class)},
                     {"formula", schema.formula},
                     {"inputs", ports_to_json(schema.inputs)},
                     {"outputs", ports_to_json(schema.outputs)},
                     {"attributes", attributes},
                     {"types", types}};
  return json.dump(1);
}

std::string partition_to_json(const Partition& partition) {
  Json json = {{"supported", partition.supported}};
  if (!partition.supported) json["unsupported_reason"] = partition.unsupported_reason;
  json["ops"] = Json::array();
  for (size_t i = 0; i < partition.ops.size(); ++i) json["ops"].push_back(op_to_json(partition, i));
  return json.dump(1);
}

}  // namespace lamina
