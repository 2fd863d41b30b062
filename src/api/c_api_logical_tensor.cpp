#include <algorithm>

#include "api/boundary.h"
#include "api/convert.h"

namespace lamina::api {
namespace {

// Checks the whole description by converting it, so that an invalid struct is never returned.
void write_checked(const lamina_graph_logical_tensor_t& description, lamina_graph_logical_tensor_t* destination) {
  from_c(description);
  *destination = description;
}

lamina_graph_logical_tensor_t describe_tensor(size_t id, lamina_data_type_t data_type, int32_t ndims,
                                              lamina_graph_layout_type_t layout_type, lamina_graph_tensor_property_t property) {
  if (ndims < -1 || ndims > LAMINA_MAX_NDIMS) {
    throw Error(Status::invalid_arguments,
                join("logical tensor ", id, ": ndims is ", ndims, ", allowed is -1 (unknown) to ", LAMINA_MAX_NDIMS));
  }
  lamina_graph_logical_tensor_t tensor{};
  tensor.id = id;
  tensor.ndims = ndims;
  tensor.data_type = data_type;
  tensor.property = property;
  tensor.layout_type = layout_type;
  if (layout_type == lamina_graph_layout_type_strided) {
    std::fill(tensor.layout.strides, tensor.layout.strides + LAMINA_MAX_NDIMS, LAMINA_GRAPH_UNKNOWN_DIM);
  }
  return tensor;
}

void set_dims(lamina_graph_logical_tensor_t& tensor, const lamina_dims_t dims, const char* function_name) {
  if (tensor.ndims < 0) {
    throw Error(Status::invalid_arguments,
                join(function_name, ": ndims is ", tensor.ndims, ", but dims are given; dims need a known rank"));
  }
  if (tensor.ndims > 0) LAMINA_REQUIRE(dims);
  std::copy(dims, dims + tensor.ndims, tensor.dims);
}

}  // namespace
}  // namespace lamina::api

using namespace lamina::api;

extern "C" {

lamina_status_t lamina_graph_logical_tensor_init(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                 lamina_data_type_t data_type, int32_t ndims,
                                                 lamina_graph_layout_type_t layout_type,
                                                 lamina_graph_tensor_property_t property) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(logical_tensor);
    auto tensor = describe_tensor(id, data_type, ndims, layout_type, property);
    std::fill(tensor.dims, tensor.dims + std::max(ndims, 0), LAMINA_GRAPH_UNKNOWN_DIM);
    write_checked(tensor, logical_tensor);
  });
}

lamina_status_t lamina_graph_logical_tensor_init_with_dims(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                           lamina_data_type_t data_type, int32_t ndims,
                                                           const lamina_dims_t dims, lamina_graph_layout_type_t layout_type,
                                                           lamina_graph_tensor_property_t property) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(logical_tensor);
    auto tensor = describe_tensor(id, data_type, ndims, layout_type, property);
    set_dims(tensor, dims, function_name);
    lamina::LogicalTensor checked_tensor = from_c(tensor);
    if (checked_tensor.layout == lamina::LayoutType::strided && checked_tensor.has_full_shape()) {
      checked_tensor.strides = lamina::dense_strides(*checked_tensor.shape);
      tensor = to_c(checked_tensor);
    }
    *logical_tensor = tensor;
  });
}

lamina_status_t lamina_graph_logical_tensor_init_with_strides(lamina_graph_logical_tensor_t* logical_tensor, size_t id,
                                                              lamina_data_type_t data_type, int32_t ndims,
                                                              const lamina_dims_t dims, const lamina_dims_t strides,
                                                              lamina_graph_tensor_property_t property) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(logical_tensor);
    auto tensor = describe_tensor(id, data_type, ndims, lamina_graph_layout_type_strided, property);
    set_dims(tensor, dims, function_name);
    if (ndims > 0) LAMINA_REQUIRE(strides);
    std::copy(strides, strides + ndims, tensor.layout.strides);
    write_checked(tensor, logical_tensor);
  });
}

lamina_status_t lamina_graph_logical_tensor_get_mem_size(const lamina_graph_logical_tensor_t* logical_tensor, size_t* size) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(logical_tensor);
    LAMINA_REQUIRE(size);
    const lamina::LogicalTensor tensor = from_c(*logical_tensor);
    *size = tensor.has_full_shape() && tensor.has_strides() ? static_cast<size_t>(tensor.byte_size()) : SIZE_MAX;
  });
}

lamina_status_t lamina_graph_logical_tensor_is_equal(const lamina_graph_logical_tensor_t* left,
                                                     const lamina_graph_logical_tensor_t* right, uint8_t* is_equal) {
  return guarded([&, function_name = __func__] {
    LAMINA_REQUIRE(left);
    LAMINA_REQUIRE(right);
    LAMINA_REQUIRE(is_equal);
    const lamina::LogicalTensor a = from_c(*left), b = from_c(*right);
    *is_equal = a.id == b.id && a.dtype == b.dtype && a.shape == b.shape && a.layout == b.layout && a.strides == b.strides &&
                a.property == b.property;
  });
}

}  // extern "C"
