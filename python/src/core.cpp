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
          nb::arg("id"), nb::arg("kind"), nb::arg("inputs"), nb::arg("attributes"), nb::arg("name") = "")
      .def("infer_outputs", &infer_outputs, nb::call_guard<nb::gil_scoped_release>(),
           "The outputs as types and shapes follow from the schema; their id says that they have none yet.")
      .def(
          "add_output", [](graph::op& self, const logical_tensor& tensor) { self.add_output(tensor); }, nb::arg("tensor"))
      .def("leave_out_output", [](graph::op& self) { self.add_output(logical_tensor()); });
  nb::class_<graph::graph>(m, "Graph", "A graph of operations; two ports with the same tensor id are connected.")
      .def(
          "__init__",
          [](graph::graph* self, const std::string& mode) {
            new (self) graph::graph(engine::kind::cpu, chosen(mode, kMathModes, "fpmath_mode"));
          },
          nb::arg("fpmath_mode") = "strict")
      .def_static("from_json", &graph_from_json, nb::arg("text"), nb::arg("name") = "graph")
      .def("to_json",
           [](const graph::graph& self) {
             return text_of(
                 [&](lamina_text_f write, void* user) { return lamina_graph_graph_write_json(self.get(), write, user); });
           })
      .def(
          "add_op", [](graph::graph& self, const graph::op& op) { self.add_op(op); }, nb::arg("op"))
      .def("set_constant", &graph::graph::set_constant, nb::arg("tensor_id"), nb::arg("value"))
      .def("finalize", &graph::graph::finalize, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("is_finalized", &graph::graph::is_finalized)
      .def("tensor", &tensor_of, nb::arg("tensor_id"))
      .def("border", &border_of)
      .def(
          "partitions",
          [](graph::graph& self, const std::string& policy) {
            const auto chosen_policy = chosen(policy, kPolicies, "policy");
            nb::gil_scoped_release others_may_run;
            return self.get_partitions(chosen_policy);
          },
          nb::arg("policy") = "fusion");
}

// ---- partitions

void bind_partitions(nb::module_& m) {
  nb::class_<graph::partition>(m, "Partition", "Ops of a graph that are compiled and executed as one.")
      .def_prop_ro("id", &graph::partition::get_id)
      .def_prop_ro("op_ids", &graph::partition::get_ops)
      .def_prop_ro("is_supported", &graph::partition::is_supported)
      .def_prop_ro("inputs", &graph::partition::get_input_ports)
      .def_prop_ro("outputs", &graph::partition::get_output_ports)
      .def(
          "compile",
          [](const graph::partition& self, const std::vector<logical_tensor>& inputs,
             const std::vector<logical_tensor>& outputs) {
            nb::gil_scoped_release others_may_run;
            return self.compile(inputs, outputs, cpu_engine());
          },
          nb::arg("inputs"), nb::arg("outputs"))
      .def("reasons_json", [](const graph::partition& self) {
        return text_of(
            [&](lamina_text_f write, void* user) { return lamina_graph_partition_write_reasons(self.get(), write, user); });
      });
  nb::class_<graph::compiled_partition>(m, "CompiledPartition", "Code for one partition with every shape and stride known.")
      .def("tensor", &graph::compiled_partition::query_logical_tensor, nb::arg("tensor_id"))
      .def_prop_ro("inplace_ports", &graph::compiled_partition::get_inplace_ports)
      .def("info_json", [](const graph::compiled_partition& self) {
        return text_of([&](lamina_text_f write, void* user) {
          return lamina_graph_compiled_partition_write_info(self.get(), write, user);
        });
      });
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
          nb::arg("steps"), nb::arg("inputs"), nb::arg("outputs"), nb::arg("inner"), nb::arg("constants"))
      .def(
          "__call__", [](Executable& self, nb::handle inputs, nb::handle outputs) { self.run(inputs, outputs); },
          nb::arg("inputs"), nb::arg("outputs"))
      .def_prop_ro("inner_bytes", &Executable::inner_bytes)
      .def_prop_ro("step_count", &Executable::step_count);
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
  m.def("op_kinds", [] {
    std::vector<std::string> names;
    for (const auto& [name, value] : kinds()) names.push_back(name);
    return names;
  });
  m.def(
      "op_schema_json",
      [](const std::string& kind) {
        return text_of([&](lamina_text_f write, void* user) {
          return lamina_graph_op_kind_write_schema(static_cast<lamina_graph_op_kind_t>(kind_from_name(kind)), write, user);
        });
      },
      nb::arg("kind"));
  m.def("version", [] {
    const lamina_version_t* const version = lamina_version();
    return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
  });
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
      nb::arg("object"), "(type, shape, strides in elements) of an object that shares its memory.");
}
