// Whether rows can be lanes, and in which groups.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Per node: whether the lanes of a vector of rows certainly have the same value, because no arg that it depends on varies with
// them.
std::vector<bool> equal_in_lanes(const kernel::Kernel& kernel, const std::vector<LaneStep>& lane_steps);

// Whether rows along the last outer dim can be lanes.
bool may_be_transposed(const kernel::Kernel& kernel);

// The possible numbers of rows per group, one lane each: those of one vector, or of several if these are full.
// Transpositions, gathers and column sums only support one vector.
std::vector<int> group_sizes(const kernel::Kernel& kernel, int vector_bits);

// Whether groups of `rows` rows divide the last outer dim without remainder.
bool fills_groups(const kernel::Kernel& kernel, int rows);

// Per arg: the distance between neighbouring rows.
std::vector<LaneStep> lane_steps(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
