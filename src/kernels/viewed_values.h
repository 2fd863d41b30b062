// Values that are in the memory of others, because an op gives their elements in the same places under another shape: a reshape
// of dense memory, a transpose whose result has the permuted strides, the bits of a type as another one. Such an op needs no
// step.
#pragma once

#include <map>
#include <span>
#include <vector>

#include "interface/graph.h"
#include "passes/fusion/fuse.h"

namespace lamina::kernel {

struct Views {
  std::map<ValueIndex, ValueIndex> memory_of;  // by value: in whose memory it is, which may be in that of another one
  std::vector<bool> needs_no_step;             // by op
};

// Only of ops that are a group of their own. An op whose result is among `outputs`, whose memory the caller chooses, puts its
// input there. `kept`: values that have a place already.
Views viewed_values(const Graph& graph, std::span<const FusionGroup> groups, std::span<const ValueIndex> outputs,
                    const std::vector<bool>& kept);

}  // namespace lamina::kernel
