// Values that are parts of the result of a concatenation, in its memory: they have the strides of the result, and their
// producers write them to their place. The concatenation then copies nothing for them.
#pragma once

#include <map>
#include <span>

#include "interface/graph.h"

namespace lamina::kernel {

struct PlaceInResult {
  ValueIndex result = kNoValue;
  int64_t bytes = 0;  // from the first byte of the result
};

// By value. Each is produced by an op of the graph, is not among `ports`, whose memory the caller chooses, and is a part of one
// result. That may be a part of another result.
std::map<ValueIndex, PlaceInResult> joined_values(const Graph& graph, std::span<const ValueIndex> ports);

}  // namespace lamina::kernel
