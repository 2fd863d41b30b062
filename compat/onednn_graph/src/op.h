// An operation as the client described it, and lamina's operation for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

#include "handle.h"
#include "onednn.h"

namespace onednn_graph {

using Attribute = std::variant<float, std::vector<float>, int64_t, std::vector<int64_t>, bool, std::string>;

// How much shape information is passed to lamina. oneDNN checks shapes when a partition is compiled, lamina as soon as it
// knows them. If lamina rejects an operation or a graph because of shapes, we retry with fewer shapes.
enum class Shapes { as_given, of_inputs, unknown };
inline constexpr Shapes kAllShapes[] = {Shapes::as_given, Shapes::of_inputs, Shapes::unknown};

}  // namespace onednn_graph

struct dnnl_graph_op {
  size_t id = 0;
  int kind = dnnl_graph_op_wildcard;
  std::string name;
  std::vector<dnnl_graph_logical_tensor_t> inputs, outputs;
  std::map<int, onednn_graph::Attribute> attributes;  // by attribute number
};

namespace onednn_graph {

// Null if lamina rejects the operation; lamina_last_error() then has the reason. An operation that lamina lacks becomes a
// Wildcard, which no partition supports.
LaminaOp lamina_op(const dnnl_graph_op& op, Shapes shapes);

}  // namespace onednn_graph
