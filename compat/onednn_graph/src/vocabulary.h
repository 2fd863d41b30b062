// oneDNN's words in lamina's: statuses, operations, attributes and logical tensors, whose values and layouts are the same on
// both sides as far as both have them.
#pragma once

#include <graph/lamina.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "onednn.h"

namespace onednn_graph {

dnnl_status_t status_of(lamina_status_t status);

// Nothing for an operation that lamina does not have.
std::optional<lamina_graph_op_kind_t> lamina_kind(int kind);
// Nothing for an attribute that oneDNN does not have.
std::optional<lamina_graph_op_attr_t> lamina_attribute(int name);

lamina_graph_logical_tensor_t lamina_tensor(const dnnl_graph_logical_tensor_t& tensor);
dnnl_graph_logical_tensor_t onednn_tensor(const lamina_graph_logical_tensor_t& tensor);
std::vector<lamina_graph_logical_tensor_t> lamina_tensors(const std::vector<dnnl_graph_logical_tensor_t>& tensors);

// What a data type takes in memory, in bits: also for types that lamina does not have. 0 for a type that oneDNN does not have.
int bits_of(int type);
// How many of its dims are told. A client may say any rank; there is room for so many.
int32_t dims_in(const dnnl_graph_logical_tensor_t& tensor);
// As oneDNN compares them: id, type, property, shape, layout type, and strides or the id of the layout.
bool are_equal(const dnnl_graph_logical_tensor_t& left, const dnnl_graph_logical_tensor_t& right);
// From the first to past the last element, in bytes; SIZE_MAX for a layout without strides.
uint64_t bytes_of(const dnnl_graph_logical_tensor_t& tensor);

}  // namespace onednn_graph
