// Sentences for the decisions that fusion took.
#pragma once

#include <vector>

#include "passes/fusion/fuse.h"
#include "passes/fusion/grow_group.h"

namespace lamina {

// Fills `reasons` of every group. Of several decisions on one pair of ops the last counts; a refusal that a later step made
// good is left out, and a refusal stands with both ops.
void explain_fusion(const FusionState& state, std::vector<FusionGroup>& groups);

}  // namespace lamina
