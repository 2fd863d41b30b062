// Whether a causal mask hides columns from the rows of a tiled region:
//
//   scores ────────────────────────────────────── Select ── SoftMax ── MatMul ── dst
//   GenIndex(rows) + offsets >= GenIndex(columns) ──┘│                   │
//   hidden ──────────────────────────────────────────┘       values ─────┘
//
// If `hidden` is -infinity, the softmax is zero in the hidden columns. If the values are finite as well, these zeros add
// nothing, and a tile needs only the columns that its last row sees. Both are known when the tiles run.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// `ops`: all of the region, in order. `is_needed`: whether a value is read outside of the region.
std::optional<CausalMask> find_causal_mask(const Graph& graph, const TileRegion& region, std::span<const int> ops,
                                           const std::function<bool(ValueIndex)>& is_needed);

}  // namespace lamina
