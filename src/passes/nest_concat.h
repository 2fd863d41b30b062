// A concatenation that begins with the parts of an earlier one takes the earlier result in their place:
//
//   a, b ──── Concat ── d        ==>   a, b ── Concat ── d
//   a, b, c ─ Concat ── e              d, c ── Concat ── e
//
// So each layer of a block of DenseNet adds its channels to one tensor, in whose memory a planner may place all parts
// (kernels/joined_values.h), and does not copy those of all layers before it.
#pragma once

#include <optional>

#include "interface/graph.h"

namespace lamina {

std::optional<Graph> nest_concat(const Graph& graph);

}  // namespace lamina
