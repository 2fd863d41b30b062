// Logical tensors: plain structs, filled and compared as in oneDNN.
#include <graph/lamina.h>

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "boundary.h"
#include "vocabulary.h"

namespace onednn_graph {
namespace {

using Tensor = dnnl_graph_logical_tensor_t;

// A tensor with unknown dims and strides; a scalar has none.
Tensor bare_tensor(size_t id, int type, int ndims, int layout, int property) {
  Tensor tensor{};
  tensor.id = id;
  tensor.ndims = ndims;
  set_number(tensor.data_type, type);
  set_number(tensor.layout_type, layout);
  set_number(tensor.property, property);
  if (ndims != 0) {
    std::fill_n(tensor.dims, DNNL_MAX_NDIMS, DNNL_GRAPH_UNKNOWN_DIM);
    std::fill_n(tensor.layout.strides, DNNL_MAX_NDIMS, DNNL_GRAPH_UNKNOWN_DIM);
  }
  return tensor;
}

// The host scalars that oneDNN allows: without dims, for scales and lengths (f32, s32) and the seeds of Dropout (s64).
bool is_legal_scalar(int type, int ndims) { return ndims <= 0 && (type == dnnl_f32 || type == dnnl_s32 || type == lamina_s64); }

bool is_legal(int type, int ndims, int lowest, int property) {
  return ndims >= lowest && ndims <= DNNL_MAX_NDIMS && (property != kHostScalar || is_legal_scalar(type, ndims));
}

// Sets dense row-major strides; a dim of 0 counts as 1. Strides that overflow wrap around.
void make_dense(Tensor& tensor) {
  uint64_t stride = 1;
  for (int dim = tensor.ndims - 1; dim >= 0; --dim) {
    tensor.layout.strides[dim] = static_cast<int64_t>(stride);
    stride *= static_cast<uint64_t>(std::max<int64_t>(tensor.dims[dim], 1));
  }
}

// Whether the extent of a known shape and its strides, in bits, overflows 64 bits.
bool is_beyond_counting(const Tensor& tensor) {
  constexpr double kMost = 9.0e18;
  const int ndims = std::min(tensor.ndims, DNNL_MAX_NDIMS);
  double elements = 1;
  for (int dim = 0; dim < ndims; ++dim) {
    if (tensor.dims[dim] <= 0) return false;
    const double stride = tensor.dims[dim] == 1 ? 1.0 : std::abs(static_cast<double>(tensor.layout.strides[dim]));
    elements += static_cast<double>(tensor.dims[dim]) * stride;
  }
  return elements * bits_of(number_of(tensor.data_type)) > kMost;
}

}  // namespace

// The size as oneDNN computes it, the maximum of dim * stride, or the end of the last element if that is larger: overlapping
// strides, which oneDNN ignores, need it. Unknown dims wrap around as in oneDNN, and the size is meaningless. Known dims must
// not wrap around: the caller would allocate too little memory.
uint64_t bytes_of(const Tensor& tensor) {
  if (number_of(tensor.layout_type) != dnnl_graph_layout_type_strided || is_beyond_counting(tensor)) return SIZE_MAX;
  const auto bits = static_cast<uint64_t>(bits_of(number_of(tensor.data_type)));
  const int ndims = std::min(tensor.ndims, DNNL_MAX_NDIMS);
  uint64_t elements = ndims == 0 ? 1 : 0, last = 0;
  for (int dim = 0; dim < ndims; ++dim) {
    const auto size = static_cast<uint64_t>(tensor.dims[dim]);
    const auto stride = size == 1 ? 1 : static_cast<uint64_t>(tensor.layout.strides[dim]);
    if (size == 0) return 0;
    elements = std::max(elements, size * stride);
    if (tensor.dims[dim] > 1) last += (size - 1) * stride;
  }
  return (std::max(elements, last + (ndims > 0 ? 1 : 0)) * bits + 7) / 8;
}

}  // namespace onednn_graph

using namespace onednn_graph;

extern "C" {

dnnl_status_t dnnl_graph_logical_tensor_init(dnnl_graph_logical_tensor_t* logical_tensor, size_t tid, dnnl_data_type_t dtype,
                                             int32_t ndims, dnnl_graph_layout_type_t ltype,
                                             dnnl_graph_tensor_property_t ptype) {
  if (any_null(logical_tensor) || !is_legal(number_of(dtype), ndims, INT32_MIN, number_of(ptype)))
    return dnnl_invalid_arguments;
  *logical_tensor = bare_tensor(tid, number_of(dtype), ndims, number_of(ltype), number_of(ptype));
  return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_dims(dnnl_graph_logical_tensor_t* logical_tensor, size_t tid,
                                                       dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                       dnnl_graph_layout_type_t ltype, dnnl_graph_tensor_property_t ptype) {
  if (any_null(logical_tensor) || !is_legal(number_of(dtype), ndims, 0, number_of(ptype)) || (ndims > 0 && any_null(dims)))
    return dnnl_invalid_arguments;
  Tensor tensor = bare_tensor(tid, number_of(dtype), ndims, number_of(ltype), number_of(ptype));
  std::fill_n(tensor.dims, DNNL_MAX_NDIMS, 0);
  std::copy_n(dims, ndims, tensor.dims);
  const bool are_known = std::all_of(tensor.dims, tensor.dims + ndims, [](int64_t dim) { return dim >= 0; });
  if (number_of(ltype) == dnnl_graph_layout_type_strided && are_known) {
    std::fill_n(tensor.layout.strides, DNNL_MAX_NDIMS, 0);
    make_dense(tensor);
  }
  *logical_tensor = tensor;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_init_with_strides(dnnl_graph_logical_tensor_t* logical_tensor, size_t tid,
                                                          dnnl_data_type_t dtype, int32_t ndims, const dnnl_dims_t dims,
                                                          const dnnl_dims_t strides, dnnl_graph_tensor_property_t ptype) {
  if (any_null(logical_tensor) || !is_legal(number_of(dtype), ndims, 0, number_of(ptype)) ||
      (ndims > 0 && any_null(dims, strides)))
    return dnnl_invalid_arguments;
  Tensor tensor = bare_tensor(tid, number_of(dtype), 0, dnnl_graph_layout_type_strided, number_of(ptype));
  tensor.ndims = ndims;
  std::copy_n(dims, ndims, tensor.dims);
  std::copy_n(strides, ndims, tensor.layout.strides);
  *logical_tensor = tensor;
  return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_get_mem_size(const dnnl_graph_logical_tensor_t* logical_tensor, size_t* size) {
  if (any_null(logical_tensor, size)) return dnnl_invalid_arguments;
  *size = bytes_of(*logical_tensor);
  return dnnl_success;
}

dnnl_status_t dnnl_graph_logical_tensor_is_equal(const dnnl_graph_logical_tensor_t* lt1, const dnnl_graph_logical_tensor_t* lt2,
                                                 uint8_t* is_equal) {
  if (any_null(lt1, lt2, is_equal)) return dnnl_invalid_arguments;
  *is_equal = are_equal(*lt1, *lt2) ? 1 : 0;
  return dnnl_success;
}

}  // extern "C"
