// Bindings of LogicalTensor: what is known about a tensor before it has memory.
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "bindings.h"
#include "names.h"
#include "views.h"

namespace lamina::python {
namespace {

using graph::logical_tensor;
using Shape = std::vector<std::optional<int64_t>>;

const std::map<std::string, logical_tensor::property_type> kProperties = {
    {"undef", logical_tensor::property_type::undef},
    {"variable", logical_tensor::property_type::variable},
    {"constant", logical_tensor::property_type::constant},
    {"host_scalar", logical_tensor::property_type::host_scalar}};

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

}  // namespace

void bind_logical_tensor(nb::module_& m) {
  nb::class_<logical_tensor>(m, "LogicalTensor",
                             "What is known about a tensor before it has memory: id, element type, shape, strides.")
      .def(
          "__init__",
          [](logical_tensor* self, size_t id, const std::string& dtype, const std::optional<Shape>& shape,
             const std::optional<std::vector<int64_t>>& strides,
             const std::string& property) { new (self) logical_tensor(make_tensor(id, dtype, shape, strides, property)); },
          nb::arg("id"), nb::arg("dtype"), nb::arg("shape").none() = nb::none(), nb::arg("strides").none() = nb::none(),
          nb::arg("property") = "undef",
          "Creates a logical tensor.\n\n"
          "id: ports with the same id are connected. dtype: a name of lamina.data_types(), such as \"f32\".\n"
          "shape: extents, with None for an unknown extent; None if the rank is unknown.\n"
          "strides: in elements, one per extent, 0 broadcasts; None: dense row-major. property: undef, variable,\n"
          "constant (equal at every execution), host_scalar.\n"
          "Raises lamina.Error for a name that does not exist, or a negative extent or stride.")
      .def_prop_ro("id", &logical_tensor::get_id, "The id: ports with the same id are connected.")
      .def_prop_ro(
          "dtype", [](const logical_tensor& self) { return name_of(self.data.data_type); }, "The name of the element type.")
      .def_prop_ro("shape", &shape_of, "The extents, with None for an unknown extent; None if the rank is unknown.")
      .def_prop_ro("strides", &strides_of, "The strides in elements; None if they are unknown.")
      .def_prop_ro("nbytes", &logical_tensor::get_mem_size, "The size in bytes from the first element to past the last one.")
      .def("with_id", &with_id, nb::arg("id"), "Returns a copy with another id.")
      .def("__repr__", &describe);
}

}  // namespace lamina::python
