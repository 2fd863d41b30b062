// How the values of a walk along rows fit the vector registers. All answers have the same bits.
#pragma once

#include <cstddef>

#include "backends/cpu/emit/body.h"

namespace lamina::cpu {

// Many live values would spill: expensive bodies run vector by vector, cheap ones interleave some vectors of a chunk.
bool may_spill(const Emission& e, const NodeList& nodes);

// How many vectors of a chunk a walk interleaves: a power of two.
size_t vectors_side_by_side(const Emission& e, const WalkTask& task);

// The passes of a walk that only reduces. The accumulators of a chunk of 64 lanes may need more registers than there are:
// then each pass covers the same elements, and adds those of its part of the lanes. A power of two.
size_t passes_over_lanes(const Emission& e, const WalkTask& task);

}  // namespace lamina::cpu
