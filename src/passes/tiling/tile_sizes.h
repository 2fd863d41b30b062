// The sizes of the tiles of a region, and whether tiles pay at all. Sizes depend only on shapes and types, so that bits do
// not depend on the machine.
#pragma once

#include <cstdint>
#include <set>
#include <string>

#include "passes/tiling/grouped_graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// The width of blocks of columns does not depend on the number of rows.
int64_t column_block(int64_t columns);

// Whether tiles of the region would compute the group's values repeatedly. This is so if the values do not have one of its
// loops, unless the tiles add up to them.
bool recomputes(const GroupedGraph& grouped, const TileRegion& region, size_t group);

// Sets the rows, bytes and segments of `region`, whose loops, cuts, sums and columns are known. Returns "" if there are good
// tiles, else the reason. `may_repeat`: groups of the region dequantise weights in each tile. `cache_bytes`: see TileTarget.
std::string choose_tile_sizes(TileRegion& region, const GroupedGraph& grouped, bool may_repeat, int64_t cache_bytes);

}  // namespace lamina
