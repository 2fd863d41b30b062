#include "lamina/op_examples.h"

#include <algorithm>
#include <cctype>
#include <concepts>

#include "interface/json/quoted.h"
#include "interface/schema_text.h"
#include "interface/status.h"

namespace lamina::driver {
namespace {

// What the example gives, and the examples of required attributes that it leaves out.
Attributes given_attributes(const OpSchema& schema) {
  Attributes attributes = schema.example.attributes;
  for (const AttributeSpec& spec : schema.attributes) {
    if (!spec.required || attributes.count(spec.name) != 0) continue;
    LAMINA_CHECK(spec.example.has_value(), join(name_of(schema.kind), " has no example of attribute ", spec.name));
    attributes[spec.name] = *spec.example;
  }
  return attributes;
}

Op described_op(const OpSchema& schema) {
  Op op;
  op.kind = schema.kind;
  op.attributes = given_attributes(schema);
  fill_defaults(op);
  return op;
}

// The first legal type of a port's type variable; "any" is f32.
DataType type_of(const OpSchema& schema, const PortSpec& port) {
  const std::vector<std::vector<DataType>> legal = legal_types(schema);
  for (size_t i = 0; i < schema.types.size(); ++i)
    if (schema.types[i].name == port.type) return legal.front()[i];
  return DataType::f32;
}

LogicalTensor dense(uint64_t id, DataType type, Dims shape) {
  LogicalTensor tensor;
  tensor.id = id;
  tensor.dtype = type;
  tensor.layout = LayoutType::strided;
  tensor.strides = dense_strides(shape);
  tensor.shape = std::move(shape);
  return tensor;
}

struct Example {
  std::vector<std::string> input_names, output_names;
  std::vector<LogicalTensor> inputs, outputs;
};

// A name that Python takes: of `src/dst`, `src`.
std::string identifier(const std::string& port) { return port.substr(0, port.find('/')); }

Example example_of(const OpSchema& schema) {
  const Op op = described_op(schema);
  const std::vector<const PortSpec*> ports = existing_inputs(schema, op.attributes);
  const std::vector<Dims>& shapes = schema.example.inputs;
  Example example;
  for (size_t i = 0; i < std::max(ports.size(), shapes.size()); ++i) {
    const PortSpec& port = *ports[std::min(i, ports.size() - 1)];
    if (i >= shapes.size() && port.presence == Presence::optional) break;
    const std::string name = identifier(port.name);
    example.input_names.push_back(port.presence == Presence::variadic ? join(name.substr(0, name.rfind('_')), '_', i) : name);
    example.inputs.push_back(dense(i, type_of(schema, port), i < shapes.size() ? shapes[i] : Dims{2, 3}));
  }
  for (const PortSpec* port : existing_outputs(schema, op.attributes)) {
    const auto name = identifier(port->name);
    const bool is_taken = std::count(example.input_names.begin(), example.input_names.end(), name) != 0;
    example.output_names.push_back(is_taken ? "new_" + name : name);
    LogicalTensor& tensor = example.outputs.emplace_back();
    tensor.id = example.inputs.size() + example.outputs.size() - 1;
    tensor.dtype = type_of(schema, *port);
  }
  Graph graph;
  graph.add_op(0, schema.kind, "op", given_attributes(schema), example.inputs, example.outputs);
  graph.finalize();
  for (LogicalTensor& tensor : example.outputs) {
    tensor = graph.tensor(*graph.find_value(tensor.id));
    LAMINA_CHECK(tensor.has_full_shape(), join("the example of ", name_of(schema.kind), " leaves an output's shape unknown"));
  }
  return example;
}

// ---- texts

template <typename T, typename Text>
std::string listed(const std::vector<T>& entries, const Text& text) {
  std::string all;
  for (const T& entry : entries) all += join(all.empty() ? "" : ", ", text(entry));
  return all;
}

std::string number(int64_t value) { return std::to_string(value); }
// With a point or an exponent, so that Python takes it for a float.
template <std::floating_point Real>
std::string number(Real value) {
  const std::string text = to_string(Attribute(value));
  return text.find_first_of(".e") == std::string::npos ? text + ".0" : text;
}

// An attribute's value in a notation, which differ in how they write a boolean.
std::string value_text(const Attribute& value, const char* yes, const char* no) {
  struct Text {
    const char *yes, *no;
    std::string operator()(bool held) const { return held ? yes : no; }
    std::string operator()(int64_t held) const { return number(held); }
    std::string operator()(float held) const { return number(held); }
    std::string operator()(double held) const { return number(held); }
    std::string operator()(const std::string& held) const { return json::quoted(held); }
    std::string operator()(const std::vector<int64_t>& held) const {
      return join('[', listed(held, [](int64_t entry) { return number(entry); }), ']');
    }
    std::string operator()(const std::vector<float>& held) const {
      return join('[', listed(held, [](float entry) { return number(entry); }), ']');
    }
  };
  return std::visit(Text{yes, no}, value);
}

std::string python_shape(const Dims& shape) {
  return join('(', listed(shape, [](int64_t extent) { return number(extent); }), shape.size() == 1 ? ",)" : ")");
}

std::string numpy_type(DataType type) {
  switch (kind_of(type)) {
    case TypeKind::boolean: return "np.bool_";
    case TypeKind::signed_integer: return join("np.int", bits_of(type));
    case TypeKind::unsigned_integer: return join("np.uint", bits_of(type));
    default: return join("np.float", bits_of(type));
  }
}

// A call in lines of up to 100 columns.
std::string python_call(const std::string& function, const std::vector<std::string>& arguments) {
  constexpr size_t kColumns = 100;
  std::string text, line = function + "(";
  const size_t indent = line.size();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string argument = arguments[i] + (i + 1 < arguments.size() ? "," : ")");
    if (i > 0 && line.size() + 1 + argument.size() > kColumns) {
      text += line + "\n";
      line = std::string(indent, ' ') + argument;
    } else {
      line += (i > 0 ? " " : "") + argument;
    }
  }
  return text + line + "\n";
}

std::vector<std::string> input_arguments(const LogicalTensor& tensor) {
  std::vector<std::string> arguments{python_shape(*tensor.shape)};
  if (tensor.dtype != DataType::f32) arguments.push_back(join('"', name_of(tensor.dtype), '"'));
  return arguments;
}

std::vector<std::string> op_arguments(const OpSchema& schema, const Example& example) {
  const auto same = [](const std::string& name) { return name; };
  std::vector<std::string> arguments{join('"', name_of(schema.kind), '"'), join('[', listed(example.input_names, same), ']')};
  // A type that does not follow from the inputs.
  const std::vector<LogicalTensor>& inputs = example.inputs;
  const DataType type = example.outputs.front().dtype;
  if (std::none_of(inputs.begin(), inputs.end(), [&](const LogicalTensor& input) { return input.dtype == type; }))
    arguments.push_back(join("dtype=\"", name_of(type), '"'));
  for (const auto& [name, value] : given_attributes(schema))
    arguments.push_back(join(name, '=', value_text(value, "True", "False")));
  return arguments;
}

std::string python_data(const LogicalTensor& tensor) {
  const bool is_float = is_floating(tensor.dtype);
  return join(is_float ? "np.full(" : "np.ones(", python_shape(*tensor.shape), is_float ? ", 0.5, " : ", ",
              numpy_type(tensor.dtype), ')');
}

std::string json_tensor(const LogicalTensor& tensor) {
  return join("{\"id\": ", tensor.id, ", \"dtype\": \"", name_of(tensor.dtype), "\", \"shape\": ", describe(*tensor.shape),
              '}');
}

std::string json_tensors(const std::vector<LogicalTensor>& tensors) {
  std::string text;
  for (const LogicalTensor& tensor : tensors) text += join(text.empty() ? "" : ",", "\n      ", json_tensor(tensor));
  return join('[', text, ']');
}

}  // namespace

bool has_example(const OpSchema& schema) { return schema.op_class != OpClass::marker && schema.op_class != OpClass::opaque; }

Graph example_graph(const OpSchema& schema) {
  const Example example = example_of(schema);
  Graph graph;
  graph.add_op(0, schema.kind, "op", given_attributes(schema), example.inputs, example.outputs);
  graph.finalize();
  return graph;
}

std::string example_json(const OpSchema& schema) {
  const Example example = example_of(schema);
  std::string attributes;
  for (const auto& [name, value] : given_attributes(schema))
    attributes += join(attributes.empty() ? "" : ",", "\n      \"", name, "\": {\"type\": \"",
                       name_of(static_cast<AttributeType>(value.index())), "\", \"value\": ", value_text(value, "1", "0"), '}');
  return join("{\n  \"graph\": [{\n    \"id\": 0, \"name\": \"op\", \"kind\": \"", name_of(schema.kind),
              "\",\n    \"attrs\": {", attributes, "},\n    \"inputs\": ", json_tensors(example.inputs),
              ",\n    \"outputs\": ", json_tensors(example.outputs), "\n  }]\n}\n");
}

std::string example_python(const OpSchema& schema) {
  const Example example = example_of(schema);
  const auto same = [](const std::string& name) { return name; };
  const auto shape_of = [](const LogicalTensor& tensor) { return python_shape(*tensor.shape); };
  std::string text = "import lamina\nimport numpy as np\n\ng = lamina.Graph()\n";
  for (size_t i = 0; i < example.inputs.size(); ++i)
    text += join(example.input_names[i], " = ", python_call("g.input", input_arguments(example.inputs[i])));
  const std::string outputs = listed(example.output_names, same);
  text += python_call(join(outputs, " = g.op"), op_arguments(schema, example));
  text += join("run = g.compile([", outputs, "])\n");
  std::vector<std::string> data;
  for (const LogicalTensor& tensor : example.inputs) data.push_back(python_data(tensor));
  text += python_call(outputs + " = run", data);
  text += join("print(", listed(example.output_names, [](const std::string& name) { return name + ".shape"; }), ")  #");
  for (const LogicalTensor& tensor : example.outputs) text += " " + shape_of(tensor);
  return text + "\n";
}

}  // namespace lamina::driver
