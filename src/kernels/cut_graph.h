// In:    a graph and a tiled region of it.
// Out:   one tile of the region as a separate graph.
// Keeps: the ids of ops and tensors; the strides of tensors that cross the region's border.
#pragma once

#include <map>
#include <vector>

#include "interface/graph.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

// Values that cross the border of a region, numbered as in the whole graph.
struct RegionBorder {
  std::vector<int> ops;  // positions of the ops that compute something in a tile
  std::vector<ValueIndex> inputs, outputs;
  std::vector<int> axes_of_positions;  // per input: the axis whose positions (0, 1, 2, ...) it contains, or -1
  // Ops that draw random numbers by position must know which part of their tensors a tile covers. Each gets an input `first`;
  // ops with equal steps share one. `tile_origins`: positions from one entry of each loop to the next.
  std::map<int, size_t> parts;
  std::vector<Dims> tile_origins;
};
RegionBorder border_of(const Graph& graph, const std::vector<FusionGroup>& groups, const TileRegion& region,
                       const std::vector<bool>& needed);

struct Tile {
  Graph graph;
  std::vector<ValueIndex> inputs, outputs;  // in `graph`, in the border's order; `tile_origins` follow its inputs
};
// A tile of `rows` rows, and of `columns` columns where these are cut too. Its contributions to sums are f32. `length`: only
// the first columns that a mask may hide (region.mask); 0: all. Throws Error if the shapes cannot be inferred from the cut
// inputs.
Tile cut_graph(const Graph& graph, const TileRegion& region, const RegionBorder& border, int64_t rows, int64_t columns,
               int64_t length = 0);

// The tensor to which tiles add, for one entry of the loops before the loop over rows.
LogicalTensor tensor_of_sum(const Graph& graph, const TileRegion& region, ValueIndex value);

// Bytes from one entry of each loop to the next.
Dims strides_of_loops(const LogicalTensor& tensor, const AxisLoops& cut, size_t loops);

}  // namespace lamina::kernel
