// How large the tiles of a region are, and whether tiles are worth their while at all. Sizes follow from shapes and types
// alone, so that bits do not depend on the machine.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "passes/tiling/grouped_graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// Blocks of columns are as wide whatever the number of rows.
int64_t column_block(int64_t columns);

// Whether a tile of the region would compute the group's values again: those without one of its loops are made by every tile
// of it, unless they add up to them.
bool recomputes(const GroupedGraph& grouped, const TileRegion& region, size_t group);

// Gives `region`, whose loops, cuts, sums and columns are known, its rows, bytes and segments; returns why there are no good
// tiles, "" if there are. `may_repeat`: groups of it dequantise weights in each tile.
std::string choose_tile_sizes(TileRegion& region, const GroupedGraph& grouped, bool may_repeat);

}  // namespace lamina
