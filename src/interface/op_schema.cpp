// The registry of schemas, and the checks that apply to ops of every kind.
#include "interface/op_schema.h"

#include <algorithm>
#include <map>
#include <utility>

#include "interface/status.h"

namespace lamina {
namespace {

bool exists(const PortSpec& port, const Attributes& attributes) {
  return !port.exists_when || port.exists_when->holds(attributes);
}

std::vector<const PortSpec*> existing_ports(const std::vector<PortSpec>& ports, const Attributes& attributes) {
  std::vector<const PortSpec*> existing;
  for (const PortSpec& port : ports)
    if (exists(port, attributes)) existing.push_back(&port);
  return existing;
}

bool is_declared(const std::vector<PortSpec>& ports, std::string_view name) {
  return std::any_of(ports.begin(), ports.end(), [&](const PortSpec& port) { return port.name == name; });
}

const LogicalTensor* tensor_at(const std::vector<const LogicalTensor*>& tensors, size_t position) {
  return position < tensors.size() ? tensors[position] : nullptr;
}

template <typename Items, typename Text>
std::string list(const Items& items, Text text) {
  std::string joined;
  for (const auto& item : items) joined += (joined.empty() ? "" : ", ") + std::string(text(item));
  return joined.empty() ? "none" : joined;
}

AttributeType type_of(const Attribute& value) { return static_cast<AttributeType>(value.index()); }

// Numbers of f64 are of f32's attributes.
bool has_type(const Attribute& value, AttributeType type) {
  return type_of(value) == type || (type == AttributeType::f32 && type_of(value) == AttributeType::f64);
}

// ---- attributes

void check_attribute_value(const OpView& view, const AttributeSpec& spec, const Attribute& value) {
  const std::string part = "attribute " + spec.name;
  if (!has_type(value, spec.type))
    view.fail(
        join(part, " is ", to_string(value), " of type ", name_of(type_of(value)), ", allowed is type ", name_of(spec.type)),
        part);
  if (!spec.allowed.empty()) {
    const auto& given = std::get<std::string>(value);
    if (std::find(spec.allowed.begin(), spec.allowed.end(), given) == spec.allowed.end())
      view.fail(join(part, " is ", to_string(value), ", allowed is ",
                     list(spec.allowed, [](const std::string& text) { return '"' + text + '"'; })),
                part);
  }
  if (!spec.check) return;
  const std::string allowed = spec.check(value);
  if (!allowed.empty()) view.fail(join(part, " is ", to_string(value), ", allowed is ", allowed), part);
}

void check_attributes(const OpView& view) {
  const OpSchema& schema = view.schema();
  for (const auto& [name, value] : view.op().attributes) {
    const AttributeSpec* spec = schema.find_attribute(name);
    if (spec == nullptr)
      view.fail(join("attribute ", name, " is not known, allowed is ",
                     list(schema.attributes, [](const AttributeSpec& known) { return known.name; })),
                "attribute " + name);
    check_attribute_value(view, *spec, value);
  }
  for (const AttributeSpec& spec : schema.attributes)
    if (spec.required && !view.op().has_attribute(spec.name))
      view.fail(join("attribute ", spec.name, " is missing, allowed is any ", name_of(spec.type), ": it is required"),
                "attribute " + spec.name);
}

// ---- port counts

// Returns "gamma is absent because use_affine is false" for a condition on one flag.
std::string why_absent(const PortSpec& port) {
  const Condition& condition = *port.exists_when;
  if (!condition.opposite.empty()) return join(port.name, " is absent because ", condition.opposite);
  return join(port.name, " exists only when ", condition.text);
}

bool is_required(const PortSpec& port, const Attributes& attributes) {
  return port.presence == Presence::required || (port.required_when && port.required_when->holds(attributes));
}

std::string why_required(const PortSpec& port) {
  if (port.required_when) return join("it is required because ", port.required_when->text);
  if (port.exists_when) return join("it is required because ", port.exists_when->text);
  return "it is required";
}

struct Side {
  const char* name;  // "input" or "output"
  const std::vector<PortSpec>* declared;
  std::vector<const PortSpec*> existing;
  std::vector<const LogicalTensor*> given;
};

void fail_extra_ports(const OpView& view, const Side& side) {
  std::string absent;
  for (const PortSpec& port : *side.declared)
    if (!exists(port, view.op().attributes)) absent += "; " + why_absent(port);
  view.fail(join(side.given.size(), ' ', side.name, "s are given, allowed is at most ", side.existing.size(), ": ",
                 list(side.existing, [](const PortSpec* port) { return port->name; }), absent));
}

void check_port_counts(const OpView& view, const Side& side) {
  const bool variadic = !side.existing.empty() && side.existing.back()->presence == Presence::variadic;
  if (!variadic && side.given.size() > side.existing.size()) fail_extra_ports(view, side);
  const bool zero_is_fine = view.op().kind == OpKind::Wildcard;
  for (size_t i = 0; i < side.existing.size(); ++i) {
    const PortSpec& port = *side.existing[i];
    if (tensor_at(side.given, i) != nullptr) continue;
    if (is_required(port, view.op().attributes))
      view.fail(join(side.given.size(), ' ', side.name, "s are given, but ", side.name, ' ', port.name, " (port ", i,
                     ") is missing: ", why_required(port)),
                join(side.name, ' ', port.name));
    if (port.presence == Presence::variadic && !zero_is_fine)
      view.fail(join(side.name, ' ', port.name, " is missing, allowed is one or more"), join(side.name, ' ', port.name));
  }
  for (size_t i = side.existing.size(); i < side.given.size(); ++i)
    if (side.given[i] == nullptr && !zero_is_fine)
      view.fail(join(side.name, ' ', i, " is an empty tensor, allowed is a tensor: each ", side.existing.back()->name,
                     " is required"),
                join(side.name, ' ', i));
}

// ---- types

struct Binding {
  DataType type = DataType::undef;
  std::string port;  // the first port that bound the variable, for example "src"
};
using Bindings = std::map<std::string, Binding, std::less<>>;

const TypeVariable& variable_of(const OpSchema& schema, const std::string& name) {
  for (const TypeVariable& variable : schema.types)
    if (variable.name == name) return variable;
  LAMINA_CHECK(false, join("schema of ", name_of(schema.kind), " has no type variable ", name));
  throw Error(Status::runtime_error, "unreachable");
}

[[noreturn]] void fail_type(const OpView& view, const std::string& message, std::string part = {}) {
  throw Error(Status::invalid_data_type, place_of(view.op(), std::move(part)), message);
}

void check_port_types(const OpView& view, const Side& side, Bindings& bindings) {
  for (size_t i = 0; i < side.given.size(); ++i) {
    if (side.given[i] == nullptr) continue;
    const PortSpec& port = *side.existing[std::min(i, side.existing.size() - 1)];
    if (port.type == "any") continue;
    const DataType given = side.given[i]->dtype;
    const TypeVariable& variable = variable_of(view.schema(), port.type);
    if (std::find(variable.allowed.begin(), variable.allowed.end(), given) == variable.allowed.end())
      fail_type(view,
                join(side.name, ' ', port.name, " is ", name_of(given), ", allowed is ",
                     list(variable.allowed, [](DataType type) { return name_of(type); })),
                join(side.name, ' ', port.name));
    const auto [bound, first] = bindings.try_emplace(port.type, Binding{given, port.name});
    if (!first && bound->second.type != given)
      fail_type(view,
                join(side.name, ' ', port.name, " is ", name_of(given), ", allowed is ", name_of(bound->second.type),
                     ", the type of ", bound->second.port),
                join(side.name, ' ', port.name));
  }
}

std::string types_of_ports(const Side& side) {
  std::string text;
  for (size_t i = 0; i < side.given.size(); ++i)
    if (side.given[i] != nullptr)
      text += join(text.empty() ? "" : ", ", side.existing[std::min(i, side.existing.size() - 1)]->name, ' ',
                   name_of(side.given[i]->dtype));
  return text;
}

void check_types(const OpView& view, const Side& inputs, const Side& outputs) {
  Bindings bindings;
  check_port_types(view, inputs, bindings);
  check_port_types(view, outputs, bindings);
  if (!view.schema().check_types) return;
  const std::string allowed = view.schema().check_types([&](std::string_view name) {
    const auto found = bindings.find(name);
    return found == bindings.end() ? DataType::undef : found->second.type;
  });
  if (allowed.empty()) return;
  fail_type(view, join("the types are ", types_of_ports(inputs), " -> ", types_of_ports(outputs), ", allowed is ", allowed));
}

// ---- registry

// Created one at a time: all schemas together exceed the stack size of some threads.
std::map<OpKind, OpSchema> all_schemas() {
  using Maker = OpSchema (*)();
  constexpr std::pair<OpKind, Maker> makers[] = {
#define LAMINA_OP(kind, value) {OpKind::kind, &schemas::kind},
#include "graph/op_kinds.def"
  };
  std::map<OpKind, OpSchema> made;
  for (const auto& [kind, make] : makers) made.emplace(kind, make());
  return made;
}

const std::map<OpKind, OpSchema>& registry() {
  static const std::map<OpKind, OpSchema> schemas = all_schemas();
  return schemas;
}

std::vector<const LogicalTensor*> tensors_of(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::vector<const LogicalTensor*> tensors;
  tensors.reserve(values.size());
  for (ValueIndex index : values) tensors.push_back(index == kNoValue ? nullptr : &graph.tensor(index));
  return tensors;
}

}  // namespace

std::string_view name_of(OpClass op_class) {
  switch (op_class) {
    case OpClass::elementwise: return "elementwise";
    case OpClass::inner_reduction: return "inner_reduction";
    case OpClass::layout: return "layout";
    case OpClass::library: return "library";
    case OpClass::marker: return "marker";
    case OpClass::opaque: return "opaque";
  }
  return "unknown";
}

const AttributeSpec* OpSchema::find_attribute(std::string_view name) const {
  for (const AttributeSpec& attribute : attributes)
    if (attribute.name == name) return &attribute;
  return nullptr;
}

OpView::OpView(const Op& op, const OpSchema& schema, std::vector<const LogicalTensor*> inputs,
               std::vector<const LogicalTensor*> outputs)
    : op_(op), schema_(schema), inputs_(std::move(inputs)), outputs_(std::move(outputs)) {}

OpView::OpView(const Graph& graph, const Op& op)
    : OpView(op, schema_of(op.kind), tensors_of(graph, op.inputs), tensors_of(graph, op.outputs)) {}

const LogicalTensor* OpView::input(std::string_view port) const {
  LAMINA_CHECK(is_declared(schema_.inputs, port), join(describe(op_), " declares no input ", port));
  return tensor_at(inputs_, port_position(schema_.inputs, op_.attributes, port));
}

const LogicalTensor* OpView::output(std::string_view port) const {
  LAMINA_CHECK(is_declared(schema_.outputs, port), join(describe(op_), " declares no output ", port));
  return tensor_at(outputs_, port_position(schema_.outputs, op_.attributes, port));
}

const Dims& OpView::shape(std::string_view input_port) const {
  const LogicalTensor* tensor = input(input_port);
  LAMINA_CHECK(tensor != nullptr && tensor->shape, join(describe(op_), ": the rank of input ", input_port, " is unknown"));
  return *tensor->shape;
}

void OpView::fail(const std::string& message, std::string part) const {
  throw Error(Status::invalid_graph_op, place_of(op_, std::move(part)), message);
}

void OpView::fail_shape(const std::string& message) const { throw Error(Status::invalid_shape, place_of(op_), message); }

const OpSchema& schema_of(OpKind kind) {
  const auto found = registry().find(kind);
  if (found == registry().end())
    throw Error(Status::invalid_graph_op, join("op kind ", static_cast<int>(kind), " is not known"));
  return found->second;
}

std::vector<const PortSpec*> existing_inputs(const OpSchema& schema, const Attributes& attributes) {
  return existing_ports(schema.inputs, attributes);
}

std::vector<const PortSpec*> existing_outputs(const OpSchema& schema, const Attributes& attributes) {
  return existing_ports(schema.outputs, attributes);
}

size_t port_position(const std::vector<PortSpec>& ports, const Attributes& attributes, std::string_view name) {
  size_t position = 0;
  for (const PortSpec& port : ports) {
    if (!exists(port, attributes)) continue;
    if (port.name == name) return position;
    ++position;
  }
  return SIZE_MAX;
}

void fill_defaults(Op& op) {
  for (const AttributeSpec& spec : schema_of(op.kind).attributes)
    if (spec.default_value) op.attributes.try_emplace(spec.name, *spec.default_value);
}

void check_op(const OpView& view) {
  check_attributes(view);
  const OpSchema& schema = view.schema();
  Side inputs{"input", &schema.inputs, existing_inputs(schema, view.op().attributes), {}};
  Side outputs{"output", &schema.outputs, existing_outputs(schema, view.op().attributes), {}};
  for (size_t i = 0; i < view.input_count(); ++i) inputs.given.push_back(view.input_at(i));
  for (size_t i = 0; i < view.output_count(); ++i) outputs.given.push_back(view.output_at(i));
  check_port_counts(view, inputs);
  check_port_counts(view, outputs);
  check_types(view, inputs, outputs);
  if (schema.check) schema.check(view);
}

int wrap_axis(int64_t axis, int rank) { return static_cast<int>(axis < 0 ? axis + rank : axis); }

int normalized_axis(const OpView& view, std::string_view attribute, int rank) {
  const auto axis = view.attribute<int64_t>(attribute);
  const std::string part = join("attribute ", attribute);
  if (rank == 0) view.fail(join(part, " is ", axis, ", but a tensor of rank 0 has no axis"), part);
  if (axis < -rank || axis >= rank) view.fail(join(part, " is ", axis, ", allowed is ", -rank, "..", rank - 1), part);
  return wrap_axis(axis, rank);
}

}  // namespace lamina
