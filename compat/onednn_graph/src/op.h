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

// How much lamina is told of shapes. oneDNN looks at shapes when a partition is compiled, lamina as soon as it knows some: what
// it refuses to an operation or a graph, it may take for granted until then.
enum class Shapes { as_given, of_inputs, unknown };
inline constexpr Shapes kAllShapes[] = {Shapes::as_given, Shapes::of_inputs, Shapes::unknown};

}  // namespace onednn_graph

struct dnnl_graph_op {
  size_t id = 0;
  int kind = dnnl_graph_op_wildcard;
  std::string name;
  std::vector<dnnl_graph_logical_tensor_t> inputs, outputs;
  std::map<int, onednn_graph::Attribute> attributes;  // by their numbers
};

namespace onednn_graph {

// Null where lamina refuses it, with the reason in lamina_last_error(). An operation that lamina does not have becomes a
// wildcard, which no partition supports.
LaminaOp lamina_op(const dnnl_graph_op& op, Shapes shapes);

}  // namespace onednn_graph
