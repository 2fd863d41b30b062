// How one op is cut along the loops of a tiled region, given the cuts of some of its values.
#pragma once

#include <string>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// Takes the loops of the op's values that region.cut contains, and adds the cuts of its other values. If `may_sum`, a product
// that sums over blocks of a loop is added to region.sums. Returns "" if the op can be cut so, else the reason. After a
// failure `region` must not be used.
std::string cut_op(TileRegion& region, const Graph& graph, const Op& op, bool may_sum);

// Returns "" if tiles can add to the result of a product that cut_op put into region.sums, else the reason why not.
std::string why_no_sum(const TileRegion& region, const Graph& graph, const Op& product);

// Removes the cuts of axes of extent 1.
AxisLoops without_ones(const LogicalTensor& tensor, AxisLoops loops);

}  // namespace lamina
