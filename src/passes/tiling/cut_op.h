// How one op is cut along the loops of a tiled region, given the cuts of some of its values.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina {

// What an op may reduce, of the loops that cut it.
enum class Reduces {
  none,
  blocks,   // a product: blocks of rows or columns
  columns,  // any op: the last loop, which must be one of columns
};

// Takes the loops of the op's values that region.cut contains, and adds the cuts of its other values. A product that sums over
// a loop is added to region.sums. Returns "" if the op can be cut so, else the reason. After a failure `region` must not be
// used.
std::string cut_op(TileRegion& region, const Graph& graph, const Op& op, Reduces reduces);

// The next op to cut: one with a value in `cut`. Prefers an op with a value that a loop cuts: a scalar that ops share
// determines none of their loops. waiting.end(): there is none.
std::vector<int>::iterator next_to_cut(const Graph& graph, std::vector<int>& waiting,
                                       const std::map<ValueIndex, AxisLoops>& cut);

// Returns "" if tiles can add to the result of a product that cut_op put into region.sums, else the reason why not.
std::string why_no_sum(const TileRegion& region, const Graph& graph, const Op& product);

// Removes the cuts of axes of extent 1.
AxisLoops without_ones(const LogicalTensor& tensor, AxisLoops loops);

}  // namespace lamina
