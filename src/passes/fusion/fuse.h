// General fusion: which ops share one loop nest.
//
// In:    a finalized graph, and which of its ops the backend can run.
// Out:   groups: every runnable op in exactly one; each group is one kernel (kernels/lower turns it into one).
// Keeps: convexity (no path leaves a group and comes back), and every value that someone outside still needs.
//
// A group has an iteration space: extents, some of them `inner` (normalised or reduced). Each operand of each op is seen
// through a DimMap that says which iteration dims run along each of its dims. A value made inside the group must be read
// through the very map through which it is written; that one rule makes a fusion legal, whatever the ops are.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina {

// Iteration dims [first, first + count) run along a dim of a value (more than one where an op splits the dim: GroupNorm
// splits C into groups and channels of a group). count 0: the value does not vary there (extent 1, or broadcast).
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
  std::map<int, std::vector<bool>> column_outputs;    // op -> per output: summed over all dims that its map does not have
  std::vector<std::vector<Reason>> reasons;           // per entry of `ops`: why it is here, why neighbours are not
  // One reshape without common dims: the elements in row-major order. The nest runs over the output; the input has no map.
  bool opaque_copy = false;
  // Not empty: one op that is no loop nest (a library op, End alone, axes given as an input), and why. No extents, no maps.
  std::string no_loop_nest;
};

// `fuse_ops` false gives every op a group of its own (policy debug).
std::vector<FusionGroup> fuse(const Graph& graph, const std::vector<bool>& runnable, bool fuse_ops);

}  // namespace lamina
