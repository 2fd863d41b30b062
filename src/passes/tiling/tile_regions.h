// Which groups run tile after tile instead of one after the other: chains of matrix products and loop nests whose rows agree.
//
// In:    a graph whose shapes are all known, and its fusion groups in an order in which they can run.
// Out:   regions in such an order; every group is in exactly one. A region of one group runs as a whole. One of several is a
//        tiled region: a tile is a block of rows of its outer dims, and is taken through all its groups before the next one.
// Keeps: convexity, and every value that someone outside still needs.
//
// The dims along which a region is cut are its loops, those of the first product's dst but the last: batch dims, one entry at
// a time, then rows, in blocks. The legality rule: each op of the region, cut along a loop, makes a slice of its outputs from
// slices of its inputs. A loop nest does along dims that it does not reduce; a product along its batch dims and the rows of its
// first factor. Values between the groups then exist for one tile at a time, and never lie in main memory.
//
// A product may also sum over a loop of blocks (gradients of keys and values sum over the rows): each tile adds its part to
// the sum, in the order of the blocks, and nobody in the region reads it. Where a region has such a sum and no op needs whole
// rows, the columns of the first product's dst are a loop of blocks too, so that rows of any length fit a tile:
//
//   S = Q K'   P = exp(S - stats)   dV += P' dO   dS = P (dO V' - d)   dK += dS' Q   dQ += dS K
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/quantized_product.h"

namespace lamina {

// Per axis of a value: the loop that cuts it, -1: none.
using AxisLoops = std::vector<int>;

struct TileRegion {
  std::vector<size_t> groups;           // positions among the fusion groups, in order
  Dims loops;                           // their extents; empty: the region runs as a whole
  int64_t rows = 0;                     // entries of the loop of rows in a tile; of those before it one
  int64_t columns = 0;                  // entries of the last loop in a tile; 0: the last loop is that of the rows
  int64_t bytes = 0;                    // of what lies between the groups, for one tile
  std::map<ValueIndex, AxisLoops> cut;  // how each value of the region is cut, inputs and outputs too
  std::map<ValueIndex, int> sums;       // results that several tiles add to: the loop over whose blocks they sum
  int64_t segments = 1;                 // parts of the rows whose sums over rows are taken apart, and then added
  std::string why_not;                  // a product that is not in a tiled region: why, one sentence

  size_t row_loop() const { return loops.size() - (columns > 0 ? 2 : 1); }
  // Entries of a loop in a tile, and how many blocks that makes of it.
  int64_t block_of(size_t loop) const { return loop == row_loop() ? rows : loop > row_loop() ? columns : 1; }
  int64_t blocks_of(size_t loop) const { return (loops[loop] + block_of(loop) - 1) / block_of(loop); }
  int64_t tiles() const;
};

// `integers` says that what dequantises the weights of a product costs nothing, the product takes the integers.
std::vector<TileRegion> tile_regions(const Graph& graph, const std::vector<FusionGroup>& groups,
                                     std::span<const ValueIndex> outputs, const IntegerSupport& integers = {});

// Every group a region of its own, in their order.
std::vector<TileRegion> one_by_one(size_t groups);

}  // namespace lamina
