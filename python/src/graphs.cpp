// Op and Graph: operations and what they make together.
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
  nb::class_<graph::op>(m, "Op", "An operation: kind, attributes and the tensors at its ports, in the order of its schema.")
      .def(
          "__init__",
          [](graph::op* self, size_t id, const std::string& kind, const std::vector<logical_tensor>& inputs, nb::dict attrs,
             const std::string& name) { new (self) graph::op(make_op(id, kind, inputs, attrs, name)); },
          nb::arg("id"), nb::arg("kind"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("name") = "",
          "An operation without outputs yet.\n\n"
          "id: of its own among the ops of a graph. kind: a name of lamina.op_kinds(). inputs: in the order of the schema's "
          "ports.\n"
          "attributes: by name, those that have a default may be absent. name: for messages, default KIND_ID.\n"
          "Raises lamina.Error for a kind or attribute that does not exist, or an attribute of another type.")
      .def("infer_outputs", &infer_outputs, nb::call_guard<nb::gil_scoped_release>(),
           "The outputs as types and shapes follow from the schema; their id says that they have none yet.\n\n"
           "Raises lamina.Error where the schema refuses the op: port or attribute, what was given and what is allowed.")
      .def(
          "add_output", [](graph::op& self, const logical_tensor& tensor) { self.add_output(tensor); }, nb::arg("tensor"),
          "The tensor at the next output port. Whether it fits is checked when a graph takes the op.")
      .def(
          "leave_out_output", [](graph::op& self) { self.add_output(logical_tensor()); },
          "Leaves the next output port out: it is not computed.");
}

void bind_graph(nb::module_& m) {
  nb::class_<graph::graph>(m, "Graph", "A graph of operations; two ports with the same tensor id are connected.")
      .def(
          "__init__",
          [](graph::graph* self, const std::string& mode) {
            new (self) graph::graph(engine::kind::cpu, chosen(mode, kMathModes, "fpmath_mode"));
          },
          nb::arg("fpmath_mode") = "strict",
          "An empty graph for the CPU. fpmath_mode: strict, bf16, f16, tf32 or any: how products of f32 may be computed.")
      .def_static("from_json", &graph_from_json, nb::arg("text"), nb::arg("name") = "graph",
                  "A graph from a dump, not finalized. name: stands in front of errors.\n\n"
                  "Raises lamina.Error with line and column where the text is no dump, or naming the op that is refused.")
      .def(
          "to_json", [](const graph::graph& self) { return text_of(self, &lamina_graph_graph_write_json); },
          "The graph as a dump, which `lamina replay` runs.")
      .def(
          "add_op", [](graph::graph& self, const graph::op& op) { self.add_op(op); }, nb::arg("op"),
          "Checks the op against its schema and adds a copy of it.\n\n"
          "Raises lamina.Error naming the op, the port or attribute, what was given and what is allowed; the graph is "
          "unchanged.")
      .def("set_constant", &graph::graph::set_constant, nb::arg("tensor_id"), nb::arg("value"),
           "Says that every element of an input is `value` at every execution, rounded to the tensor's type.\n\n"
           "Raises lamina.Error for a tensor that no op reads, that an op makes, or that has another value already.")
      .def("finalize", &graph::graph::finalize, nb::call_guard<nb::gil_scoped_release>(),
           "Ends building: orders ops and infers shapes.\n\n"
           "Raises lamina.Error for a cycle, a tensor that two ops make, or shapes that do not agree.")
      .def_prop_ro("is_finalized", &graph::graph::is_finalized, "Whether building has ended.")
      .def("tensor", &tensor_of, nb::arg("tensor_id"),
           "What the graph knows of a tensor; once finalized, its inferred shape too. Raises lamina.Error where no op has it.")
      .def("border", &border_of,
           "(tensors that ops read and none makes, in order of first use; tensors that none reads or an End op marks).")
      .def(
          "partitions",
          [](graph::graph& self, const std::string& policy) {
            const auto chosen_policy = chosen(policy, kPolicies, "policy");
            nb::gil_scoped_release others_may_run;
            return self.get_partitions(chosen_policy);
          },
          nb::arg("policy") = "fusion",
          "Partitions of a finalized graph, in an order in which they can run. policy: fusion, or debug: one op each.\n\n"
          "Raises lamina.Error where the graph is not finalized.");
}

}  // namespace lamina::python
