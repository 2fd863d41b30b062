// Attention written out in small ops: its mask, its lengths and its statistics are inputs of ops that take anything, and mean
// something only where they stand.
#pragma once

#include <optional>

#include "interface/graph.h"
#include "lamina/fill_rules.h"

namespace lamina::driver {

// One op that reads a graph input, or what becomes of it by ops that only move values.
struct Reader {
  const Graph& graph;
  const Op& op;
  size_t port;
  const LogicalTensor& tensor;  // the graph input

  ValueIndex made() const { return op.outputs.empty() ? kNoValue : op.outputs.front(); }
  bool is_scalar() const { return tensor.has_full_shape() && tensor.element_count() == 1; }
};

// The rule for an input that has such a part in attention.
std::optional<FillRule> attention_rule(const Reader& reader);

}  // namespace lamina::driver
