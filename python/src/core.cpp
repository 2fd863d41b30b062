// The module lamina._core: the C++ interface as Python sees it, names and types made Python's. What it throws is
// lamina.Error(message, status), with the sentence of the C interface.
#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <functional>
#include <map>

#include "executable.h"
#include "graph/text.h"
#include "views.h"

namespace lamina::python {
namespace {

using graph::logical_tensor;
using Shape = std::vector<std::optional<int64_t>>;

// ---- texts and names

std::string text_of(const std::function<lamina_status_t(lamina_text_f, void*)>& writer) {
  std::string text;
  error::wrap_c_api(writer(
      [](void* user, const char* begin, size_t length) { static_cast<std::string*>(user)->assign(begin, length); }, &text));
  return text;
}

const std::map<std::string, int>& kinds() {
  static const std::map<std::string, int> values = {
#define LAMINA_OP(kind, value) {#kind, value},
#include "graph/op_kinds.def"
  };
  return values;
}

graph::op::kind kind_from_name(const std::string& name) {
  const auto found = kinds().find(name);
  if (found == kinds().end())
    throw error(lamina_invalid_arguments, "there is no op kind \"" + name + "\"; lamina.op_kinds() lists what there is");
  return static_cast<graph::op::kind>(found->second);
}

enum class Kind { boolean, s64, s64_list, f32, f32_list, string };
struct AttributeName {
  graph::op::attr attribute;
  Kind kind;
};

const std::map<std::string, AttributeName>& attributes() {
  static const std::map<std::string, AttributeName> values = {
#define LAMINA_ATTRIBUTE(name, value, type) {#name, {graph::op::attr::name, Kind::type}},
#include "graph/attribute_kinds.def"
  };
  return values;
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
    default: return "runtime_error";
  }
}

template <typename Enum>
Enum chosen(const std::string& name, const std::map<std::string, Enum>& values, const char* what) {
  const auto found = values.find(name);
  if (found != values.end()) return found->second;
  std::string names;
  for (const auto& [each, value] : values) names += (names.empty() ? "" : ", ") + each;
  throw error(lamina_invalid_arguments, std::string(what) + " is \"" + name + "\", allowed is one of " + names);
}

const std::map<std::string, fpmath_mode> kMathModes = {{"strict", fpmath_mode::strict},
                                                       {"bf16", fpmath_mode::bf16},
                                                       {"f16", fpmath_mode::f16},
                                                       {"any", fpmath_mode::any},
                                                       {"tf32", fpmath_mode::tf32}};
const std::map<std::string, graph::partition::policy> kPolicies = {{"fusion", graph::partition::policy::fusion},
                                                                   {"debug", graph::partition::policy::debug}};
const std::map<std::string, logical_tensor::property_type> kProperties = {
    {"undef", logical_tensor::property_type::undef},
    {"variable", logical_tensor::property_type::variable},
    {"constant", logical_tensor::property_type::constant},
    {"host_scalar", logical_tensor::property_type::host_scalar}};

// ---- logical tensors

logical_tensor make_tensor(size_t id, const std::string& dtype, const std::optional<Shape>& shape,
                           const std::optional<std::vector<int64_t>>& strides, const std::string& property) {
  const auto type = static_cast<logical_tensor::data_type>(type_from_name(dtype));
  const auto kind = chosen(property, kProperties, "the property of a tensor");
  if (!shape) {
    logical_tensor unknown(id, type, logical_tensor::layout_type::undef);
    unknown.data.property = static_cast<lamina_graph_tensor_property_t>(kind);
    return unknown;
  }
  logical_tensor::dims dims;
  bool known = true;
  for (const auto& dim : *shape) {
    dims.push_back(dim.value_or(LAMINA_GRAPH_UNKNOWN_DIM));
    known = known && dim.has_value();
  }
  if (strides) return {id, type, dims, *strides, kind};
  return {id, type, dims, known ? logical_tensor::layout_type::strided : logical_tensor::layout_type::undef, kind};
}

nb::object shape_of(const logical_tensor& tensor) {
  if (tensor.data.ndims < 0) return nb::none();
  nb::list dims;
  for (int i = 0; i < tensor.data.ndims; ++i) {
    if (tensor.data.dims[i] == LAMINA_GRAPH_UNKNOWN_DIM) {
      dims.append(nb::none());
    } else {
      dims.append(tensor.data.dims[i]);
    }
  }
  return nb::tuple(dims);
}

nb::object strides_of(const logical_tensor& tensor) {
  if (tensor.data.layout_type != lamina_graph_layout_type_strided || tensor.data.ndims < 0) return nb::none();
  nb::list strides;
  for (int i = 0; i < tensor.data.ndims; ++i) {
    if (tensor.data.layout.strides[i] == LAMINA_GRAPH_UNKNOWN_DIM) return nb::none();
    strides.append(tensor.data.layout.strides[i]);
  }
  return nb::tuple(strides);
}

logical_tensor with_id(const logical_tensor& tensor, size_t id) {
  logical_tensor copy = tensor;
  copy.data.id = id;
  return copy;
}

std::string describe(const logical_tensor& tensor) {
  std::string text =
      std::string("LogicalTensor(") + std::to_string(tensor.get_id()) + ", '" + name_of(tensor.data.data_type) + "'";
  text += ", shape=" + nb::cast<std::string>(nb::repr(shape_of(tensor)));
  return text + ", strides=" + nb::cast<std::string>(nb::repr(strides_of(tensor))) + ")";
}

void bind_logical_tensor(nb::module_& m) {
  nb::class_<logical_tensor>(m, "LogicalTensor",
                             "What is known of a tensor before it has memory: id, element type, shape, strides.")
      .def(
          "__init__",
          [](logical_tensor* self, size_t id, const std::string& dtype, const std::optional<Shape>& shape,
             const std::optional<std::vector<int64_t>>& strides,
             const std::string& property) { new (self) logical_tensor(make_tensor(id, dtype, shape, strides, property)); },
          nb::arg("id"), nb::arg("dtype"), nb::arg("shape").none() = nb::none(), nb::arg("strides").none() = nb::none(),
          nb::arg("property") = "undef",
          "A logical tensor.\n\n"
          "id: ports with the same id are connected. dtype: f32, bf16, f16, f64, s32, s64, s8, u8, boolean, f8_e5m2, f8_e4m3, "
          "s4, u4.\n"
          "shape: extents, None for one that is not known yet; None: the rank is not known. strides: in elements, one per "
          "extent,\n"
          "0 broadcasts; None: dense, row-major. property: undef, variable, constant (equal at every execution), host_scalar.\n"
          "Raises lamina.Error for a name that does not exist, a negative extent or stride.")
      .def_prop_ro("id", &logical_tensor::get_id, "Its id: ports with the same id are connected.")
      .def_prop_ro(
          "dtype", [](const logical_tensor& self) { return name_of(self.data.data_type); }, "The element type, by its name.")
      .def_prop_ro("shape", &shape_of, "Extents, None for one that is not known; None where the rank is not known.")
      .def_prop_ro("strides", &strides_of, "In elements; None where they are not known.")
      .def_prop_ro("nbytes", &logical_tensor::get_mem_size, "Bytes from the first to past the last element.")
      .def("with_id", &with_id, nb::arg("id"), "The same under another id.")
      .def("__repr__", &describe);
}

// ---- ops and graphs

template <typename T>
void set(graph::op& op, const std::string& name, graph::op::attr attribute, nb::handle value, const char* allowed) {
  T converted;
  if (!nb::try_cast(value, converted))
    throw error(lamina_invalid_arguments,
                "attribute " + name + " is " + nb::cast<std::string>(nb::repr(value)) + ", allowed is " + allowed);
  op.set_attr(attribute, converted);
}

void set_attribute(graph::op& op, const std::string& name, nb::handle value) {
  const auto found = attributes().find(name);
  if (found == attributes().end()) throw error(lamina_invalid_arguments, "there is no attribute \"" + name + "\"");
  const graph::op::attr attribute = found->second.attribute;
  switch (found->second.kind) {
    case Kind::boolean: return set<bool>(op, name, attribute, value, "True or False");
    case Kind::s64: return set<int64_t>(op, name, attribute, value, "an integer");
    case Kind::f32: return set<double>(op, name, attribute, value, "a number");
    case Kind::string: return set<std::string>(op, name, attribute, value, "a string");
    case Kind::s64_list: return set<std::vector<int64_t>>(op, name, attribute, value, "a sequence of integers");
    case Kind::f32_list: return set<std::vector<float>>(op, name, attribute, value, "a sequence of numbers");
  }
}

graph::op make_op(size_t id, const std::string& kind, const std::vector<logical_tensor>& inputs, nb::dict attrs,
                  const std::string& name) {
  graph::op op(id, kind_from_name(kind), name);
  op.add_inputs(inputs);
  for (const auto& [key, value] : attrs) {
    try {
      set_attribute(op, nb::cast<std::string>(key), value);
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

void bind_graph(nb::module_& m) {
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
          "to_json",
          [](const graph::graph& self) {
            return text_of(
                [&](lamina_text_f write, void* user) { return lamina_graph_graph_write_json(self.get(), write, user); });
          },
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

// ---- partitions

// What a compilation calls while others may run; what it throws stops the compilation and is thrown when that has ended.
struct Progress {
  nb::handle call;
  std::exception_ptr thrown = nullptr;

  static int tell(void* user, size_t done, size_t total, const char* name) {
    Progress& self = *static_cast<Progress*>(user);
    const nb::gil_scoped_acquire held;
    try {
      return nb::cast<bool>(nb::bool_(self.call(done, total, name))) ? 1 : 0;
    } catch (...) {
      self.thrown = std::current_exception();
      return 1;
    }
  }
};

graph::compiled_partition compile(const graph::partition& self, const std::vector<logical_tensor>& inputs,
                                  const std::vector<logical_tensor>& outputs, const nb::object& progress) {
  Progress told{progress};
  if (!progress.is_none()) error::wrap_c_api(lamina_set_compile_progress(&Progress::tell, &told));
  const auto ended = [&](const std::exception_ptr& failed) {
    if (!progress.is_none()) lamina_set_compile_progress(nullptr, nullptr);
    if (told.thrown != nullptr) std::rethrow_exception(told.thrown);
    if (failed != nullptr) std::rethrow_exception(failed);
  };
  std::optional<graph::compiled_partition> made;
  std::exception_ptr failed = nullptr;
  {
    const nb::gil_scoped_release others_may_run;
    try {
      made = self.compile(inputs, outputs, cpu_engine());
    } catch (...) {
      failed = std::current_exception();
    }
  }
  ended(failed);
  return *std::move(made);
}

const std::map<std::string, lamina_graph_explanation_t> kFormats = {
    {"json", lamina_graph_explanation_json}, {"html", lamina_graph_explanation_html}, {"dot", lamina_graph_explanation_dot}};

std::string explain(const std::vector<graph::partition>& partitions,
                    const std::vector<std::optional<graph::compiled_partition>>& compiled, bool compile_them,
                    const std::string& format, const std::string& title, const std::optional<std::string>& report) {
  const lamina_graph_explanation_t wanted = chosen(format, kFormats, "format");
  if (!compiled.empty() && compiled.size() != partitions.size())
    throw error(lamina_invalid_arguments, std::to_string(compiled.size()) +
                                              " compiled partitions are given, allowed is none or " +
                                              std::to_string(partitions.size()));
  std::vector<const_lamina_graph_partition_t> given;
  std::vector<const_lamina_graph_compiled_partition_t> codes;
  for (const graph::partition& partition : partitions) given.push_back(partition.get());
  for (const auto& code : compiled) codes.push_back(code ? code->get() : nullptr);
  const nb::gil_scoped_release others_may_run;
  return text_of([&](lamina_text_f write, void* user) {
    return lamina_graph_partitions_explain(given.size(), given.data(), codes.empty() ? nullptr : codes.data(),
                                           compile_them ? cpu_engine().get() : nullptr, wanted, title.c_str(),
                                           report ? report->c_str() : nullptr, write, user);
  });
}

// ---- what is told meanwhile

// Lines of lamina_set_verbose_output go to a Python function that is kept as long as it may be called: until another takes its
// place, and then for ever, since a line may be on its way.
void tell_line(void* user, const char* line, size_t length) {
  const nb::gil_scoped_acquire held;
  try {
    nb::handle(static_cast<PyObject*>(user))(nb::str(line, length));
  } catch (nb::python_error& failed) {
    failed.discard_as_unraisable("a function that lamina tells what it does");
  }
}

void set_verbose(int level, nb::object write) {
  PyObject* const kept = write.is_none() ? nullptr : write.release().ptr();
  const nb::gil_scoped_release a_line_may_be_written;
  error::wrap_c_api(lamina_set_verbose_output(level, kept == nullptr ? nullptr : &tell_line, kept));
}

void bind_partitions(nb::module_& m) {
  nb::class_<graph::partition>(m, "Partition", "Ops of a graph that are compiled and executed as one.")
      .def_prop_ro("id", &graph::partition::get_id, "Unique in the process.")
      .def_prop_ro("op_ids", &graph::partition::get_ops,
                   "Ids of the graph's ops that are in it; an op that a pass took into another one counts too.")
      .def_prop_ro("is_supported", &graph::partition::is_supported, "False where no kernel can run it; reasons_json says why.")
      .def_prop_ro("inputs", &graph::partition::get_input_ports,
                   "The tensors that it reads, in order of first use, with what the graph knows of their shapes.")
      .def_prop_ro("outputs", &graph::partition::get_output_ports,
                   "The tensors that it makes for others, in the order of its ops.")
      .def(
          "compile", &compile, nb::arg("inputs"), nb::arg("outputs"), nb::arg("progress").none() = nb::none(),
          "Code for these tensors, which are matched to ports by id, in any order.\n\n"
          "inputs: with known shapes; those that are no port are ignored. outputs: shapes and strides may be unknown: "
          "inferred, "
          "dense.\n"
          "progress: called as progress(done, total, name) before each of `total` steps, and at the end; what it returns stops "
          "the\n"
          "compilation if it is true. Not called where the code is in the cache. Other Python threads run meanwhile.\n"
          "Raises lamina.Error: a port without its tensor, a tensor that contradicts the graph, shapes that do not agree, an "
          "op "
          "that\ncannot run, a compilation that was stopped; and what progress raises.")
      .def(
          "reasons_json",
          [](const graph::partition& self) {
            return text_of(
                [&](lamina_text_f write, void* user) { return lamina_graph_partition_write_reasons(self.get(), write, user); });
          },
          "JSON: \"supported\", \"unsupported_reason\" where it is not, and \"ops\" with \"id\", \"kind\", \"name\" and "
          "\"reasons\"\n(\"code\", which scripts may rely on, and \"text\").");
  nb::class_<graph::compiled_partition>(m, "CompiledPartition", "Code for one partition with every shape and stride known.")
      .def(
          "tensor", &graph::compiled_partition::query_logical_tensor, nb::arg("tensor_id"),
          "The tensor of a port with its final shape and strides (in elements). Raises lamina.Error for an id that is no port.")
      .def_prop_ro("inplace_ports", &graph::compiled_partition::get_inplace_ports,
                   "(input id, output id) of pairs that may be given the same memory.")
      .def(
          "info_json",
          [](const graph::compiled_partition& self) {
            return text_of([&](lamina_text_f write, void* user) {
              return lamina_graph_compiled_partition_write_info(self.get(), write, user);
            });
          },
          "JSON: \"backend\", \"kernels\" (names), \"schedules\", \"required_bytes\" (inputs and outputs, each once),\n"
          "\"moved_bytes\" (read and written in main memory), \"workspace_bytes\", \"compile_ms\", \"from_cache\".");
  nb::class_<Executable>(m, "Executable", "Compiled partitions that run one after the other in one call.")
      .def(
          "__init__",
          [](Executable* self, nb::list steps, nb::list inputs, const std::vector<logical_tensor>& outputs,
             const std::vector<logical_tensor>& inner, nb::list constants) {
            std::vector<Step> made;
            for (const nb::handle step : steps)
              made.push_back({nb::cast<graph::compiled_partition>(step[0]), nb::cast<std::vector<size_t>>(step[1]),
                              nb::cast<std::vector<size_t>>(step[2])});
            std::vector<Input> given;
            for (const nb::handle input : inputs)
              given.push_back(
                  {nb::cast<logical_tensor>(input[0]), nb::cast<logical_tensor>(input[1]), nb::cast<size_t>(input[2])});
            std::vector<Constant> scalars;
            for (const nb::handle constant : constants) {
              const nb::bytes bytes = nb::cast<nb::bytes>(constant[1]);
              scalars.push_back({nb::cast<logical_tensor>(constant[0]), std::string(bytes.c_str(), bytes.size())});
            }
            new (self) Executable(std::move(made), std::move(given), outputs, inner, std::move(scalars));
          },
          nb::arg("steps"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("inner"), nb::arg("constants"),
          "steps: (CompiledPartition, slots of its inputs, slots of its outputs); a slot counts the inputs, then the outputs, "
          "the "
          "inner\n"
          "tensors and the constants. inputs: (tensor that is read, tensor that is given, bytes from the one's beginning to "
          "the "
          "other's).\n"
          "outputs, inner: tensors that leave, and those that pass between steps, in memory of its own. constants: (scalar, "
          "its "
          "bytes).\n"
          "Raises lamina.Error for a slot that does not exist.")
      .def(
          "__call__", [](Executable& self, nb::handle inputs, nb::handle outputs) { self.run(inputs, outputs); },
          nb::arg("inputs"), nb::arg("outputs"),
          "Runs it. inputs, outputs: sequences of objects that share their memory, in order; outputs are written to.\n\n"
          "Other Python threads run meanwhile. Raises lamina.Error naming the object that does not fit and what is allowed.")
      .def_prop_ro("inner_bytes", &Executable::inner_bytes, "Bytes of what passes between steps, for one call at a time.")
      .def_prop_ro("step_count", &Executable::step_count, "How many compiled partitions a call executes.");
}

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const error& refused) {
    const nb::object type = nb::module_::import_("lamina._errors").attr("Error");
    PyErr_SetObject(type.ptr(), type(refused.what(), status_name(refused.status)).ptr());
  }
}

}  // namespace
}  // namespace lamina::python

NB_MODULE(_core, m) {
  using namespace lamina::python;
  nb::register_exception_translator(&translate);
  nb::set_leak_warnings(false);  // what torch keeps compiled lives until the process ends
  bind_logical_tensor(m);
  bind_graph(m);
  bind_partitions(m);
  m.def(
      "explain", &explain, nb::arg("partitions"), nb::arg("compiled"), nb::arg("compile"), nb::arg("format"),
      nb::arg("title") = "", nb::arg("report").none() = nb::none(),
      "What there is to tell of partitions of one graph, as a text.\n\n"
      "partitions: in an order in which they can run. compiled: [], or a CompiledPartition or None for each: for its shapes, "
      "else\n"
      "for those that the graph knows, each is compiled to tell kernels, schedules and tiles, unless `compile` is false.\n"
      "format: json, html (a page that needs nothing else) or dot. report: text of a `lamina replay --report`, whose times are "
      "told.\nRaises lamina.Error for no partitions, those of two graphs, a report of others.");
  m.def("set_verbose", &set_verbose, nb::arg("level"), nb::arg("write").none() = nb::none(),
        "Has `write` called with a line per compilation and execution (level 1), per pass too (2), or nothing (0); -1: what\n"
        "LAMINA_VERBOSE says. write: any thread calls it, one at a time; None: lines go to stdout. Raises lamina.Error for "
        "another "
        "level.");
  m.def(
      "op_kinds",
      [] {
        std::vector<std::string> names;
        for (const auto& [name, value] : kinds()) names.push_back(name);
        return names;
      },
      "The names of all operations.");
  m.def(
      "op_schema_json",
      [](const std::string& kind) {
        return text_of([&](lamina_text_f write, void* user) {
          return lamina_graph_op_kind_write_schema(static_cast<lamina_graph_op_kind_t>(kind_from_name(kind)), write, user);
        });
      },
      nb::arg("kind"),
      "JSON: \"kind\", \"class\", \"formula\", \"inputs\", \"outputs\", \"attributes\", \"types\". Raises lamina.Error for a "
      "kind "
      "that\ndoes not exist.");
  m.def(
      "version",
      [] {
        const lamina_version_t* const version = lamina_version();
        return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
      },
      "The version of the library, as \"major.minor.patch\".");
  m.def(
      "describe",
      [](nb::handle object) {
        const View view = view_of(object, false, "the object");
        nb::list dims, strides;
        for (int i = 0; i < view.rank; ++i) {
          dims.append(view.dims[static_cast<size_t>(i)]);
          strides.append(view.strides[static_cast<size_t>(i)]);
        }
        return nb::make_tuple(name_of(view.type), nb::tuple(dims), nb::tuple(strides));
      },
      nb::arg("object"),
      "(type, shape, strides in elements) of an object that shares its memory: numpy's, torch's, DLPack's, the buffer\n"
      "protocol's. Raises lamina.Error for an object that shares none, or not on the CPU.");
  m.def("signature", &signature, nb::arg("arrays"),
        "Type, shape and strides of each array of a sequence, None for none, as bytes: what compiled code is kept by.\n"
        "Raises lamina.Error as describe().");
}
