// The module lamina._core: bindings of the C++ interface, with Python's names and types. Errors become lamina.Error(message,
// status), with the sentence of the C interface.
#include <cstddef>
#include <exception>
#include <string>
#include <vector>

#include "bindings.h"
#include "graph/lamina.hpp"
#include "graph/text.h"
#include "names.h"
#include "views.h"

namespace lamina::python {
namespace {

void translate(const std::exception_ptr& thrown, void*) {
  try {
    std::rethrow_exception(thrown);
  } catch (const error& refused) {
    const nb::object type = nb::module_::import_("lamina._errors").attr("Error");
    PyErr_SetObject(type.ptr(), type(refused.what(), status_name(refused.status)).ptr());
  }
}

std::vector<std::string> op_kind_names() {
  std::vector<std::string> names;
  for (const auto& [name, value] : op_kinds()) names.push_back(name);
  return names;
}

std::string op_schema_json(const std::string& kind) {
  return text_of([&](lamina_text_f write, void* user) {
    return lamina_graph_op_kind_write_schema(static_cast<lamina_graph_op_kind_t>(kind_from_name(kind)), write, user);
  });
}

std::string version_text() {
  const lamina_version_t* const version = lamina_version();
  return std::to_string(version->major) + "." + std::to_string(version->minor) + "." + std::to_string(version->patch);
}

nb::tuple describe(nb::handle object) {
  const View view = view_of(object, false, "the object");
  nb::list dims, strides;
  for (int i = 0; i < view.rank; ++i) {
    dims.append(view.dims[static_cast<size_t>(i)]);
    strides.append(view.strides[static_cast<size_t>(i)]);
  }
  return nb::make_tuple(name_of(view.type), nb::tuple(dims), nb::tuple(strides));
}

}  // namespace
}  // namespace lamina::python

NB_MODULE(_core, m) {
  using namespace lamina::python;
  nb::register_exception_translator(&translate);
  nb::set_leak_warnings(false);  // torch keeps compiled objects until the process ends
  bind_logical_tensor(m);
  bind_op(m);
  bind_graph(m);
  bind_partition(m);
  bind_compiled_partition(m);
  bind_executable(m);
  bind_explain(m);
  bind_profile(m);
  bind_verbose(m);
  bind_fingerprints(m);
  bind_draws(m);
  bind_export(m);
  m.def("op_kinds", &op_kind_names, "Returns the names of all operations.");
  m.def("data_types", &type_names, "Returns the names of all element types.");
  m.def("type_kinds", &type_kinds,
        "Returns the kind of each element type by its name: real, small_float, signed_integer, unsigned_integer or\n"
        "boolean.");
  m.def("array_types", &array_types,
        "Returns, for each element type that arrays can have: (type string of numpy, name in torch). Types that\n"
        "numpy lacks are unsigned integers of the same size, which hold the raw bits.");
  m.def("op_schema_json", &op_schema_json, nb::arg("kind"),
        "Returns the schema as JSON: \"kind\", \"class\", \"formula\", \"inputs\", \"outputs\", \"attributes\", \"types\".\n"
        "Raises lamina.Error for a kind that does not exist.");
  m.def("version", &version_text, "Returns the version of the library as \"major.minor.patch\".");
  m.def("describe", &describe, nb::arg("object"),
        "Returns (type, shape, strides in elements) of an object that shares its memory: an array of numpy or\n"
        "torch, or an object with DLPack or the buffer protocol. Raises lamina.Error for an object that shares no\n"
        "memory of the CPU.");
  m.def("signature", &signature, nb::arg("arrays"),
        "Returns type, shape and strides of each array of a sequence (whose entries may be None) as bytes: the\n"
        "key under which compiled code is cached. Raises lamina.Error as describe().");
}
