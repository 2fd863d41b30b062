// General fusion: which ops share one loop nest.
//
// In:    a finalized graph, and which of its ops the backend can run.
// Out:   groups. Every runnable op is in exactly one. Each group is one kernel (kernels/lower creates it).
// Keeps: convexity (no path leaves a group and returns to it), and every value that is needed outside its group.
//
// A group has an iteration space: extents, some of them `inner` (normalised or reduced). A DimMap describes each operand of
// each op: it says which iteration dims run along each of the operand's dims. A value that is computed inside the group must
// be read through the same map through which it is written. This one rule makes a fusion legal for any ops.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"
#include "passes/core/capabilities.h"

namespace lamina {

// Iteration dims [first, first + count) run along a dim of a value. There are several if an op splits the dim: GroupNorm
// splits C into groups and channels of a group. Count 0: the value does not vary there (extent 1, or broadcast).
struct AxisRun {
  int first = 0;
  int count = 0;
  bool operator==(const AxisRun&) const = default;
};
using DimMap = std::vector<AxisRun>;  // one per dim of the value

struct FusionGroup {
  std::vector<int> ops;                               // positions in graph.ops(), topological order
  Dims extents;                                       // of the iteration dims; kUnknownDim where unknown
  std::vector<bool> inner;                            // per iteration dim: normalised or reduced by some op of the group
  std::map<std::pair<int, int>, DimMap> input_maps;   // {op, input port} -> map
  std::map<std::pair<int, int>, DimMap> output_maps;  // {op, output port} -> map
  // op -> per output: whether it sums over all dims that its map does not have
  std::map<int, std::vector<bool>> column_outputs;
  // per entry of `ops`: why it is in the group, and why neighbours are not
  std::vector<std::vector<Reason>> reasons;
  // A reshape without common dims copies the elements in row-major order. The nest runs over the output; the input has no
  // map.
  bool opaque_copy = false;
  // If not empty, the group is one op without a loop nest (a library op, a lone End, axes given as an input), and this is the
  // reason. There are no extents and no maps.
  std::string no_loop_nest;
};

// If `fuse_ops` is false, every op is a separate group (policy debug). `library`: may be null.
std::vector<FusionGroup> fuse(const Graph& graph, const std::vector<bool>& runnable, bool fuse_ops,
                              const LibraryCapabilities* library = nullptr);

}  // namespace lamina
