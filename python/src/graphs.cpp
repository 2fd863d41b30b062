// Bindings of Op and Graph.
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "bindings.h"
#include "graph/text.h"
#include "names.h"

namespace lamina::python {
namespace {

using graph::logical_tensor;

const std::map<std::string, fpmath_mode> kMathModes = {{"strict", fpmath_mode::strict},
                                                       {"bf16", fpmath_mode::bf16},
                                                       {"f16", fpmath_mode::f16},
                                                       {"any", fpmath_mode::any},
                                                       {"tf32", fpmath_mode::tf32}};
const std::map<std::string, graph::partition::policy> kPolicies = {{"fusion", graph::partition::policy::fusion},
                                                                   {"debug", graph::partition::policy::debug}};

template <typename T>
void set(graph::op& op, const std::string& name, graph::op::attr attribute, nb::handle value, const char* allowed) {
  T converted;
  if (!nb::try_cast(value, converted))
    throw error(lamina_invalid_arguments,
                "attribute " + name + " is " + nb::cast<std::string>(nb::repr(value)) + ", allowed is " + allowed);
  op.set_attr(attribute, converted);
}

void set_attribute(graph::op& op, nb::handle key, nb::handle value) {
  std::string name;
  if (!nb::try_cast(key, name))
    throw error(lamina_invalid_arguments,
                "the name of an attribute is " + nb::cast<std::string>(nb::repr(key)) + ", allowed is a string");
  const auto [attribute, type] = attribute_from_name(name);
  switch (type) {
    case AttributeType::boolean: return set<bool>(op, name, attribute, value, "True or False");
    case AttributeType::s64: return set<int64_t>(op, name, attribute, value, "an integer");
    case AttributeType::f32: return set<double>(op, name, attribute, value, "a number");
    case AttributeType::string: return set<std::string>(op, name, attribute, value, "a string");
    case AttributeType::s64_list: return set<std::vector<int64_t>>(op, name, attribute, value, "a sequence of integers");
    case AttributeType::f32_list: return set<std::vector<float>>(op, name, attribute, value, "a sequence of numbers");
  }
}

graph::op make_op(size_t id, const std::string& kind, const std::vector<logical_tensor>& inputs, nb::dict attrs,
                  const std::string& name) {
  graph::op op(id, kind_from_name(kind), name);
  op.add_inputs(inputs);
  for (const auto& [key, value] : attrs) {
    try {
      set_attribute(op, key, value);
    } catch (const error& refused) {
      throw error(refused.status, kind + " \"" + name + "\": " + refused.what());
    }
  }
  return op;
}

std::vector<logical_tensor> infer_outputs(const graph::op& op) {
  std::vector<lamina_graph_logical_tensor_t> outputs(64);
  size_t count = outputs.size();
  error::wrap_c_api(lamina_graph_op_infer_outputs(op.get(), &count, outputs.data()));
  return {outputs.begin(), outputs.begin() + static_cast<std::ptrdiff_t>(count)};
}

graph::graph graph_from_json(const std::string& text, const std::string& name) {
  graph::graph made(engine::kind::cpu);
  lamina_graph_graph_t created = nullptr;
  error::wrap_c_api(lamina_graph_graph_create_from_json(&created, text.data(), text.size(), name.c_str()));
  made.reset(created);
  return made;
}

std::pair<std::vector<logical_tensor>, std::vector<logical_tensor>> border_of(const graph::graph& self) {
  size_t inputs = 0, outputs = 0;
  error::wrap_c_api(lamina_graph_graph_get_border_num(self.get(), &inputs, &outputs));
  std::vector<lamina_graph_logical_tensor_t> in(inputs), out(outputs);
  error::wrap_c_api(lamina_graph_graph_get_border(self.get(), inputs, in.data(), outputs, out.data()));
  return {{in.begin(), in.end()}, {out.begin(), out.end()}};
}

logical_tensor tensor_of(const graph::graph& self, size_t id) {
  lamina_graph_logical_tensor_t data;
  error::wrap_c_api(lamina_graph_graph_get_logical_tensor(self.get(), id, &data));
  return logical_tensor(data);
}

}  // namespace

void bind_op(nb::module_& m) {
  nb::class_<graph::op>(m, "Op",
                        "An operation: its kind, its attributes, and the tensors at its ports in the order of its schema.")
      .def(
          "__init__",
          [](graph::op* self, size_t id, const std::string& kind, const std::vector<logical_tensor>& inputs, nb::dict attrs,
             const std::string& name) { new (self) graph::op(make_op(id, kind, inputs, attrs, name)); },
          nb::arg("id"), nb::arg("kind"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("name") = "",
          "Creates an operation without outputs.\n\n"
          "id: unique among the ops of a graph. kind: a name of lamina.op_kinds(). inputs: in the order of the\n"
          "schema's ports. attributes: by name; attributes with a default may be absent. name: used in messages,\n"
          "default KIND_ID.\n"
          "Raises lamina.Error for a kind or attribute that does not exist, or a value of another type.")
      .def("infer_outputs", &infer_outputs, nb::call_guard<nb::gil_scoped_release>(),
           "Returns the outputs with the types and shapes that follow from the schema. They have no ids yet.\n\n"
           "Raises lamina.Error if the schema rejects the op; the message has the port or attribute, the given and\n"
           "the allowed value.")
      .def(
          "add_output", [](graph::op& self, const logical_tensor& tensor) { self.add_output(tensor); }, nb::arg("tensor"),
          "Adds the tensor of the next output port. Graph.add_op checks whether it matches the schema.")
      .def(
          "leave_out_output", [](graph::op& self) { self.add_output(logical_tensor()); },
          "Omits the next output port: it is not computed.");
}

void bind_graph(nb::module_& m) {
  nb::class_<graph::graph>(m, "Graph", "A graph of operations; two ports with the same tensor id are connected.")
      .def(
          "__init__",
          [](graph::graph* self, const std::string& mode) {
            new (self) graph::graph(engine::kind::cpu, chosen(mode, kMathModes, "fpmath_mode"));
          },
          nb::arg("fpmath_mode") = "strict",
          "Creates an empty graph for the CPU.\n\n"
          "fpmath_mode: strict, or bf16, f16, tf32 or any: the types in which products of f32 may be computed.")
      .def_static("from_json", &graph_from_json, nb::arg("text"), nb::arg("name") = "graph",
                  "Creates a graph from a dump, not finalized. name: prefixes error messages.\n\n"
                  "Raises lamina.Error with line and column if the text is not a dump, or with the op that is rejected.")
      .def(
          "to_json", [](const graph::graph& self) { return text_of(self, &lamina_graph_graph_write_json); },
          "The graph as a dump, which `lamina replay` runs.")
      .def(
          "add_op", [](graph::graph& self, const graph::op& op) { self.add_op(op); }, nb::arg("op"),
          "Checks the op against its schema and adds a copy of it.\n\n"
          "Raises lamina.Error with the op, the port or attribute, the given and the allowed value; the graph is\n"
          "then unchanged.")
      .def("set_constant", &graph::graph::set_constant, nb::arg("tensor_id"), nb::arg("value"),
           "Declares that every element of an input is `value` at every execution, rounded to the tensor's type.\n\n"
           "Raises lamina.Error for a tensor that no op reads, that an op produces, or that already has another\n"
           "value.")
      .def("finalize", &graph::graph::finalize, nb::call_guard<nb::gil_scoped_release>(),
           "Ends building: orders the ops and infers shapes.\n\n"
           "Raises lamina.Error for a cycle, a tensor with two producers, or contradicting shapes.")
      .def_prop_ro("is_finalized", &graph::graph::is_finalized, "Whether finalize() has been called.")
      .def("tensor", &tensor_of, nb::arg("tensor_id"),
           "Returns what the graph knows about a tensor, including the inferred shape once the graph is finalized.\n"
           "Raises lamina.Error for a tensor of no op.")
      .def("border", &border_of,
           "Returns (inputs, outputs): the tensors that ops read and no op produces, in order of first use; and the\n"
           "tensors that no op reads, or that an End op marks.")
      .def(
          "partitions",
          [](graph::graph& self, const std::string& policy) {
            const auto chosen_policy = chosen(policy, kPolicies, "policy");
            nb::gil_scoped_release others_may_run;
            return self.get_partitions(chosen_policy);
          },
          nb::arg("policy") = "fusion",
          "Returns the partitions of a finalized graph, in an order in which they can run. policy: fusion, or debug\n"
          "for one op each.\n\n"
          "Raises lamina.Error if the graph is not finalized.");
}

}  // namespace lamina::python
