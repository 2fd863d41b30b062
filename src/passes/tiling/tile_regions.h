// Which groups run tile after tile instead of one after the other: chains of matrix products and loop nests whose rows agree.
//
// In:    a graph whose shapes are all known, and its fusion groups in an order in which they can run.
// Out:   regions in such an order. Every group is in exactly one. A region of one group runs as a whole. One of several
//        groups is a tiled region: a tile is a block of rows of its outer dims, and runs through all groups before the next
//        tile starts.
// Keeps: convexity, and every value that is needed outside.
//
// The loops of a region are the dims along which it is cut: those of the first product's dst except the last. Batch dims are
// cut into single entries, rows into blocks. If the entries of the last batch dim share the product's weights and have few
// rows, the rows are not cut, and the last batch dim is cut into blocks like rows. A cut along a loop is legal if each op of
// the region computes a slice of its outputs from slices of its inputs. This holds for a loop nest along dims that it does not
// reduce, and for a product along its batch dims and the rows of its first factor. Values between the groups then exist for one
// tile at a time, and are never written to main memory.
//
// A product may also sum over a loop of blocks (gradients of keys and values sum over the rows). Each tile adds its part to
// the sum, in the order of the blocks, and no op of the region reads the sum. If a region has such a sum and no op needs
// whole rows, the columns of the first product's dst are a loop of blocks too, so that rows of any length fit a tile:
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

// Per axis of a value: the loop that cuts it, or -1.
using AxisLoops = std::vector<int>;

// A mask that hides columns of the first product's dst from its rows (causal_mask.h).
struct CausalMask {
  // Row r sees the columns before r + seen_more + the sum of the offsets, which are integers of one element.
  struct Offset {
    ValueIndex value;
    int sign;
  };
  int64_t seen_more = 0;
  std::vector<Offset> offsets;
  ValueIndex hidden = kNoValue;    // what the hidden columns contain instead, of one element
  ValueIndex values = kNoValue;    // second factor of the product behind the softmax
  std::map<ValueIndex, int> axes;  // of values that vary along the columns: the axis of the columns
  std::vector<int64_t> lengths;    // numbers of columns, fewer than all, with which tiles may be computed; ascending
};

struct TileRegion {
  std::vector<size_t> groups;  // positions among the fusion groups, in order
  Dims loops;                  // their extents; empty: the region runs as a whole
  // entries of the loop over rows in a tile; a tile has one entry of each loop before it
  int64_t rows = 0;
  int64_t columns = 0;                  // entries of the last loop in a tile; 0: the last loop is the loop over rows
  int64_t bytes = 0;                    // of the values between the groups, for one tile
  std::map<ValueIndex, AxisLoops> cut;  // how each value of the region is cut, inputs and outputs too
  std::map<ValueIndex, int> sums;       // results to which several tiles add: the loop over whose blocks they sum
  std::optional<CausalMask> mask;       // tiles may leave out columns that it hides
  int64_t segments = 1;                 // parts of the rows whose sums over rows are computed separately and then added
  std::string why_not;                  // for a product that is not in a tiled region: the reason, one sentence

  size_t row_loop() const { return loops.size() - (columns > 0 ? 2 : 1); }
  // The entries of a loop in a tile, and the number of blocks of the loop.
  int64_t block_of(size_t loop) const { return loop == row_loop() ? rows : loop > row_loop() ? columns : 1; }
  int64_t blocks_of(size_t loop) const { return (loops[loop] + block_of(loop) - 1) / block_of(loop); }
  int64_t tiles() const;
};

// What tiles depend on besides the graph.
struct TileTarget {
  int64_t cache_bytes = 0;                       // of the thread that runs a tile
  const LibraryCapabilities* library = nullptr;  // dequantising weights costs nothing if it multiplies the integers
};
std::vector<TileRegion> tile_regions(const Graph& graph, const std::vector<FusionGroup>& groups,
                                     std::span<const ValueIndex> outputs, const TileTarget& target);

// Returns one region per group, in the order of the groups.
std::vector<TileRegion> one_by_one(size_t groups);

}  // namespace lamina
