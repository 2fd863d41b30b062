// Conversions from oneDNN to lamina: statuses, operations, attributes and logical tensors, whose values and layouts are equal
// on both sides if both have them.
#pragma once

#include <graph/lamina.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "onednn.h"

namespace onednn_graph {

dnnl_status_t status_of(lamina_status_t status);

// nullopt for an operation that lamina lacks.
std::optional<lamina_graph_op_kind_t> lamina_kind(int kind);
// nullopt for an attribute that oneDNN lacks.
std::optional<lamina_graph_op_attr_t> lamina_attribute(int name);

lamina_graph_logical_tensor_t lamina_tensor(const dnnl_graph_logical_tensor_t& tensor);
dnnl_graph_logical_tensor_t onednn_tensor(const lamina_graph_logical_tensor_t& tensor);
std::vector<lamina_graph_logical_tensor_t> lamina_tensors(const std::vector<dnnl_graph_logical_tensor_t>& tensors);

// The size of a data type in bits, including types that lamina lacks; 0 for a type that oneDNN lacks.
int bits_of(int type);
// The number of valid entries of `dims`: a client may pass any rank, but the array has DNNL_MAX_NDIMS entries.
int32_t dims_in(const dnnl_graph_logical_tensor_t& tensor);
// Compares id, type, property, shape, layout type, and strides or layout id, as oneDNN does.
bool are_equal(const dnnl_graph_logical_tensor_t& left, const dnnl_graph_logical_tensor_t& right);
// The size in bytes from the first element to past the last one; SIZE_MAX for a layout without strides.
uint64_t bytes_of(const dnnl_graph_logical_tensor_t& tensor);

}  // namespace onednn_graph
