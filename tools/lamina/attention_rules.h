// Fill rules for attention written out in small ops: its mask, lengths and statistics are inputs of general ops, and only the
// surrounding ops determine which values are meaningful.
#pragma once

#include <optional>

#include "interface/graph.h"
#include "lamina/fill_rules.h"

namespace lamina::driver {

// An op that reads a graph input, directly or after ops that only move values.
struct Reader {
  const Graph& graph;
  const Op& op;
  size_t port;
  const LogicalTensor& tensor;  // the graph input

  ValueIndex made() const { return op.outputs.empty() ? kNoValue : op.outputs.front(); }
  bool is_scalar() const { return tensor.has_full_shape() && tensor.element_count() == 1; }
};

// The rule for an input with such a role in attention; nullopt for other inputs.
std::optional<FillRule> attention_rule(const Reader& reader);

}  // namespace lamina::driver
