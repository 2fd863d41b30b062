// Whether lanes are elements of a row or rows, by a model of both costs.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Moves the outer dim whose rows should be lanes to the last position, if the transposed schedule suits one of them. Kernels
// with column sums keep their order, because they are added in the order of rows.
kernel::Kernel with_rows_arranged(kernel::Kernel kernel, const Machine& machine);

// Whether rows along the last outer dim can be lanes.
bool may_be_transposed(const kernel::Kernel& kernel);

// The possible numbers of rows per group, one lane each: those of one vector, or of several if these are full.
// Transpositions, gathers and column sums only support one vector.
std::vector<int> group_sizes(const kernel::Kernel& kernel, int vector_bits);

// Whether groups of `rows` rows divide the last outer dim without remainder.
bool fills_groups(const kernel::Kernel& kernel, int rows);

// Per arg: the distance between neighbouring rows.
std::vector<LaneStep> lane_steps(const kernel::Kernel& kernel);

// Chooses the machine's widest vectors, or half of that width if only those are full. Their lanes are rows if that costs
// less. The kernel's rows are arranged.
void choose_lanes(Schedule& schedule, const kernel::Kernel& kernel, const Machine& machine);

}  // namespace lamina::cpu
