// In:    a graph, and a tiled region of it.
// Out:   one tile of the region as a graph of its own.
// Keeps: the ids of ops and tensors; the strides of what crosses the region's border.
#pragma once

#include <map>
#include <vector>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

// What crosses the border of a region, as values of the whole graph.
struct RegionBorder {
  std::vector<int> ops;  // positions of the ops that compute something in a tile
  std::vector<ValueIndex> inputs, outputs;
  std::vector<int> axes_of_positions;  // per input: -1, or it is the positions along this axis, made by no op
  // Ops that draw by position, and so must know which part of their tensors a tile has: the input `first` that each gets, of as
  // many as differ. `firsts`: positions from one entry of each loop to the next.
  std::map<int, size_t> parts;
  std::vector<Dims> firsts;
};
RegionBorder border_of(const Graph& graph, const std::vector<FusionGroup>& groups, const TileRegion& region,
                       const std::vector<bool>& needed);

struct Tile {
  Graph graph;
  std::vector<ValueIndex> inputs, outputs;  // in `graph`, in the order of the border; behind its inputs `firsts`
};
// A tile of `rows` rows, and `columns` columns where these are cut too; what it adds to sums is in f32. Throws Error when the
// shapes do not follow from those of the cut inputs.
Tile cut_graph(const Graph& graph, const TileRegion& region, const RegionBorder& border, int64_t rows, int64_t columns);

// What tiles add to, of one entry of the loops before that of the rows.
LogicalTensor tensor_of_sum(const Graph& graph, const TileRegion& region, ValueIndex value);

// Bytes from one entry of each loop to the next.
Dims strides_of_loops(const LogicalTensor& tensor, const AxisLoops& cut, size_t loops);

}  // namespace lamina::kernel
