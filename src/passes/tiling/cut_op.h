// How one op is cut along the loops of a tiled region, given how some of its values are.
#pragma once

#include <string>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// Takes over the loops of those of the op's values that region.cut has, and adds how the others are cut; a product that sums
// over blocks of a loop goes to region.sums, if `may_sum`. Returns why the op can not be cut so, "" if it can; the region is of
// no use after a refusal.
std::string cut_op(TileRegion& region, const Graph& graph, const Op& op, bool may_sum);

// Why tiles can not add to the result of a product that cut_op put into region.sums, "" if they can.
std::string why_no_sum(const TileRegion& region, const Graph& graph, const Op& product);

// An axis of extent 1 is not cut: there is nothing to cut.
AxisLoops without_ones(const LogicalTensor& tensor, AxisLoops loops);

}  // namespace lamina
