#include "api/convert.h"

#include <algorithm>
#include <array>
#include <string>

#include "interface/status.h"

namespace lamina::api {

namespace {

[[noreturn]] void fail_enumerator(std::string_view what, int value, std::string_view allowed) {
  throw Error(Status::invalid_arguments, join(what, " is ", value, ", which does not exist; allowed: ", allowed));
}

// Checks an enumerator of a range without gaps, from `first` to `last`.
template <typename Internal, typename External>
Internal checked_range(External value, Internal first, Internal last, std::string_view what, std::string_view allowed) {
  const int number = static_cast<int>(value);
  if (number < static_cast<int>(first) || number > static_cast<int>(last)) fail_enumerator(what, number, allowed);
  return static_cast<Internal>(number);
}

std::string name_port(const lamina_graph_logical_tensor_t& tensor) { return join("logical tensor ", tensor.id, ": "); }

void check_dims(const lamina_graph_logical_tensor_t& tensor) {
  for (int dim = 0; dim < tensor.ndims; ++dim) {
    const int64_t size = tensor.dims[dim];
    if (size < 0 && size != kUnknownDim) {
      throw Error(Status::invalid_arguments,
                  join(name_port(tensor), "dim ", dim, " is ", size, ", allowed is 0 or more, or LAMINA_GRAPH_UNKNOWN_DIM"));
    }
  }
}

Dims strides_of(const lamina_graph_logical_tensor_t& tensor) {
  Dims strides(tensor.layout.strides, tensor.layout.strides + tensor.ndims);
  if (std::find(strides.begin(), strides.end(), kUnknownDim) != strides.end()) return {};
  for (size_t dim = 0; dim < strides.size(); ++dim) {
    if (strides[dim] < 0) {
      throw Error(Status::invalid_arguments,
                  join(name_port(tensor), "stride ", dim, " is ", strides[dim], ", allowed is 0 or more"));
    }
  }
  return strides;
}

}  // namespace

DataType checked(lamina_data_type_t type) {
  const auto value = static_cast<DataType>(static_cast<int>(type));
  if (!is_data_type(value)) {
    fail_enumerator("data type", static_cast<int>(type), "the enumerators of lamina_data_type_t");
  }
  return value;
}

LayoutType checked(lamina_graph_layout_type_t layout) {
  return checked_range(layout, LayoutType::undef, LayoutType::opaque, "layout type", "undef, any, strided, opaque");
}

PropertyType checked(lamina_graph_tensor_property_t property) {
  return checked_range(property, PropertyType::undef, PropertyType::host_scalar, "property type",
                       "undef, variable, constant, host_scalar");
}

OpKind checked(lamina_graph_op_kind_t kind) {
  const auto value = static_cast<OpKind>(static_cast<int>(kind));
  const auto& kinds = all_op_kinds();
  if (std::find(kinds.begin(), kinds.end(), value) == kinds.end()) {
    fail_enumerator("op kind", static_cast<int>(kind), "the enumerators of lamina_graph_op_kind_t");
  }
  return value;
}

EngineKind checked(lamina_engine_kind_t kind) {
  return checked_range(kind, EngineKind::any, EngineKind::gpu, "engine kind", "any, cpu, gpu");
}

FpMathMode checked(lamina_fpmath_mode_t mode) {
  return checked_range(mode, FpMathMode::strict, FpMathMode::tf32, "fpmath mode", "strict, bf16, f16, any, tf32");
}

PartitionPolicy checked(lamina_graph_partition_policy_t policy) {
  return checked_range(policy, PartitionPolicy::fusion, PartitionPolicy::debug, "partition policy", "fusion, debug");
}

AttributeKind checked(lamina_graph_op_attr_t attribute) {
  switch (static_cast<int>(attribute)) {
#define LAMINA_ATTRIBUTE(name, value, type) \
  case value: return {#name, AttributeType::type};
#include "graph/attribute_kinds.def"
    default: fail_enumerator("op attribute", static_cast<int>(attribute), "the enumerators of lamina_graph_op_attr_t");
  }
}

LogicalTensor from_c(const lamina_graph_logical_tensor_t& tensor) {
  LogicalTensor result;
  result.id = tensor.id;
  if (result.is_empty_port()) return result;
  result.dtype = checked(tensor.data_type);
  result.property = checked(tensor.property);
  result.layout = checked(tensor.layout_type);
  if (tensor.ndims < -1 || tensor.ndims > kMaxRank) {
    throw Error(Status::invalid_arguments,
                join(name_port(tensor), "ndims is ", tensor.ndims, ", allowed is -1 (unknown) to ", kMaxRank));
  }
  if (result.property == PropertyType::host_scalar && tensor.ndims > 0) {
    throw Error(Status::invalid_arguments,
                join(name_port(tensor), "ndims is ", tensor.ndims, " with property host_scalar, allowed is 0"));
  }
  if (tensor.ndims < 0) return result;
  check_dims(tensor);
  result.shape = Dims(tensor.dims, tensor.dims + tensor.ndims);
  if (result.layout == LayoutType::strided) result.strides = strides_of(tensor);
  return result;
}

lamina_graph_logical_tensor_t to_c(const LogicalTensor& tensor) {
  lamina_graph_logical_tensor_t result{};
  result.id = tensor.id;
  result.ndims = tensor.rank();
  result.data_type = static_cast<lamina_data_type_t>(tensor.dtype);
  result.property = static_cast<lamina_graph_tensor_property_t>(tensor.property);
  result.layout_type = static_cast<lamina_graph_layout_type_t>(tensor.layout);
  if (tensor.shape) std::copy(tensor.shape->begin(), tensor.shape->end(), result.dims);
  if (tensor.layout == LayoutType::strided) {
    if (tensor.strides.empty()) std::fill(result.layout.strides, result.layout.strides + LAMINA_MAX_NDIMS, kUnknownDim);
    std::copy(tensor.strides.begin(), tensor.strides.end(), result.layout.strides);
  }
  return result;
}

}  // namespace lamina::api
