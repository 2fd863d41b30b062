// Conversions between the C ABI's plain structs and enumerators and the library's own types. Enumerator values are equal on
// both sides; incoming values are checked, because C accepts any integer as an enumerator.
#pragma once

#include <string_view>

#include "graph/lamina.h"
#include "interface/graph.h"
#include "interface/logical_tensor.h"
#include "interface/op.h"
#include "interface/partition.h"

namespace lamina::api {

// Throw Error(invalid_arguments) with the value and the allowed values.
DataType checked(lamina_data_type_t type);
LayoutType checked(lamina_graph_layout_type_t layout);
PropertyType checked(lamina_graph_tensor_property_t property);
OpKind checked(lamina_graph_op_kind_t kind);
EngineKind checked(lamina_engine_kind_t kind);
FpMathMode checked(lamina_fpmath_mode_t mode);
PartitionPolicy checked(lamina_graph_partition_policy_t policy);

// An attribute's name in the schemas and the type of its enumerator.
struct AttributeKind {
  std::string_view name;
  AttributeType type;
};
AttributeKind checked(lamina_graph_op_attr_t attribute);

// Unknown strides (layout strided with an unknown dim) become empty. Throws Error(invalid_arguments).
LogicalTensor from_c(const lamina_graph_logical_tensor_t& tensor);
lamina_graph_logical_tensor_t to_c(const LogicalTensor& tensor);

}  // namespace lamina::api
