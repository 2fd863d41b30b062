// In:    a graph, its fusion groups and regions, and the library steps among them.
// Out:   the same with TypeCast ops around the steps whose library does not take bf16 or f16. These steps compute in f32.
//
//   LayerNorm ── MatMul ── ReLU      f16   ==>   {LayerNorm, TypeCast} ── MatMul ── {TypeCast, ReLU}
//
// Keeps: bits: every value is rounded to its type once, and read as rounded. Casts join the kernel that writes the value, or
// the only one that reads it; else they are a kernel of their own. In a tiled region, values without the region's rows are
// cast before it; the plan of a tile casts the others.
#pragma once

#include <optional>
#include <vector>

#include "interface/graph.h"
#include "kernels/library_steps.h"
#include "passes/core/capabilities.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

// Ops and values keep their numbers; new ones follow.
struct CastGraph {
  Graph graph;
  std::vector<FusionGroup> groups;
  std::vector<TileRegion> regions;
};

// Nothing if the library takes all types. Changes the results of post-ops in `steps`.
std::optional<CastGraph> insert_casts(const Graph& graph, const std::vector<FusionGroup>& groups,
                                      const std::vector<TileRegion>& regions, LibrarySteps& steps,
                                      const LibraryCapabilities& library);

}  // namespace lamina::kernel
