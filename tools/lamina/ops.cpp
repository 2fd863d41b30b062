#include "lamina/ops.h"

#include <algorithm>
#include <cctype>
#include <functional>
#include <ostream>

#include "interface/op_schema.h"
#include "interface/schema_text.h"
#include "interface/status.h"
#include "lamina/lines.h"

namespace lamina::driver {
namespace {

std::string padded(std::string_view text, size_t width) {
  std::string result(text);
  result.resize(std::max(width, result.size()), ' ');
  return result;
}

// "title: text", wrapped beside the title.
std::string titled(const std::string& title, std::string_view text) {
  return beside(title + ":", title.size() + 2, std::string(text));
}

std::string port_names(const std::vector<PortSpec>& ports) {
  std::string names;
  for (const PortSpec& port : ports) {
    const bool may_be_absent = port.presence == Presence::optional || port.exists_when;
    names +=
        join(names.empty() ? "" : ", ", port.name, port.presence == Presence::variadic ? "..." : "", may_be_absent ? "?" : "");
  }
  return names.empty() ? "nothing" : names;
}

void print_all(std::ostream& out) {
  size_t width = 0;
  for (const OpKind kind : all_op_kinds()) width = std::max(width, name_of(kind).size());
  for (const OpKind kind : all_op_kinds()) {
    const OpSchema& schema = schema_of(kind);
    const std::string left = padded(name_of(kind), width) + "  " + padded(name_of(schema.op_class), 15);
    out << beside(left, left.size() + 2, port_names(schema.inputs) + " -> " + port_names(schema.outputs));
  }
}

void print_ports(std::ostream& out, const char* title, const std::vector<PortSpec>& ports) {
  out << title << ":" << (ports.empty() ? " none\n" : "\n");
  size_t name_width = 0;
  size_t type_width = 0;
  for (const PortSpec& port : ports) {
    name_width = std::max(name_width, port.name.size());
    type_width = std::max(type_width, port.type.size());
  }
  for (size_t i = 0; i < ports.size(); ++i) {
    const PortSpec& port = ports[i];
    const std::string left = join("  ", i, "  ") + padded(port.name, name_width) + "  " + padded(port.type, type_width);
    out << beside(left, left.size() + 2, presence_text(port) + (port.meaning.empty() ? "" : join("; ", port.meaning)));
  }
}

void print_attributes(std::ostream& out, const std::vector<AttributeSpec>& attributes) {
  out << "attributes:" << (attributes.empty() ? " none\n" : "\n");
  size_t width = 0;
  for (const AttributeSpec& attribute : attributes) width = std::max(width, attribute.name.size());
  for (const AttributeSpec& attribute : attributes) {
    const std::string left = "  " + padded(attribute.name, width) + "  " + padded(name_of(attribute.type), 6);
    std::string text = default_text(attribute);
    if (const std::string allowed = allowed_text(attribute); !allowed.empty()) text += "; " + allowed;
    out << beside(left, left.size() + 2, text + (attribute.meaning.empty() ? "" : join("; ", attribute.meaning)));
  }
}

void print_types(std::ostream& out, const OpSchema& schema) {
  out << "types:" << (schema.types.empty() ? " any\n" : "\n");
  for (const TypeVariable& variable : schema.types) {
    std::string names;
    for (const DataType type : variable.allowed) names += join(names.empty() ? "" : ", ", name_of(type));
    const std::string left = join("  ", variable.name, ":");
    out << beside(left, left.size() + 1, names);
  }
  if (!schema.type_rule_text.empty()) out << titled("  rule", schema.type_rule_text);
}

void print_one(std::ostream& out, const OpSchema& schema) {
  out << name_of(schema.kind) << " (" << name_of(schema.op_class) << ")\n";
  if (!schema.formula.empty()) out << titled("formula", schema.formula);
  if (!schema.source.empty()) out << titled("source", schema.source);
  print_ports(out, "inputs", schema.inputs);
  if (const std::string data = data_text(schema, std::identity()); !data.empty()) out << titled("data", data);
  print_ports(out, "outputs", schema.outputs);
  print_attributes(out, schema.attributes);
  print_types(out, schema);
  if (const std::string accuracy = accuracy_text(schema); !accuracy.empty()) out << titled("accuracy", accuracy);
  if (const std::string range = range_text(schema); !range.empty()) out << titled("range", range);
  for (const auto& [input, output] : schema.inplace) out << "in place: " << input << " and " << output << " may share memory\n";
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::transform(result.begin(), result.end(), result.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return result;
}

// Kinds whose names contain the given text, ignoring case.
std::string similar_kinds(const std::string& asked) {
  std::string similar;
  for (const OpKind kind : all_op_kinds())
    if (!asked.empty() && lower(name_of(kind)).find(lower(asked)) != std::string::npos)
      similar += (similar.empty() ? "" : ", ") + std::string(name_of(kind));
  return similar;
}

}  // namespace

void print_ops(std::ostream& out, const std::string& kind) {
  if (kind.empty()) return print_all(out);
  if (const auto found = op_kind_from_name(kind)) return print_one(out, schema_of(*found));
  const std::string similar = similar_kinds(kind);
  throw Error(Status::invalid_arguments, join("ops ", kind, ": the kind does not exist, allowed is ",
                                              similar.empty() ? "a kind that `lamina ops` lists" : similar));
}

}  // namespace lamina::driver
