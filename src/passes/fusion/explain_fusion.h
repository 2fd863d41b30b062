// Sentences for the decisions of fusion.
#pragma once

#include <vector>

#include "passes/fusion/fuse.h"
#include "passes/fusion/grow_group.h"

namespace lamina {

// Fills `reasons` of every group. Only the last decision on a pair of ops counts. A refusal is reported at both ops, and
// omitted if a later step fused them.
void explain_fusion(const FusionState& state, std::vector<FusionGroup>& groups);

}  // namespace lamina
