// Which ops of a partition become part of a library step: those that dequantise the factors of a product of integers, or the
// weights of one of floats, and the elementwise ops that the library applies to its result.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <vector>

#include "interface/graph.h"
#include "passes/core/capabilities.h"
#include "passes/fusion/fuse.h"
#include "passes/tiling/dequantized_weights.h"
#include "passes/tiling/post_ops.h"
#include "passes/tiling/quantized_product.h"
#include "passes/tiling/tile_regions.h"

namespace lamina::kernel {

struct LibrarySteps {
  std::map<int, QuantizedProduct> quantized;      // by the product's position
  std::map<int, DequantizedWeights> dequantized;  // by the product's position
  std::map<int, PostOps> post_ops;                // by the product's position
  std::set<int> left_out;                         // ops that are part of these products
  std::map<int, int> product_of;                  // by the first op of a group of post-ops, at whose place the step runs

  // The ports of the step for this op.
  std::vector<ValueIndex> inputs(const Graph& graph, int position) const;
  std::vector<ValueIndex> outputs(const Graph& graph, int position) const;
  // The ops that dequantise the factors which this product reads as integers.
  std::vector<int> omitted_ops(int position) const;
};

// The plans of tiles find those in tiled regions. `library` may be null.
LibrarySteps find_library_steps(const Graph& graph, std::span<const ValueIndex> outputs, const std::vector<FusionGroup>& groups,
                                const std::vector<TileRegion>& regions, const LibraryCapabilities* library);

}  // namespace lamina::kernel
