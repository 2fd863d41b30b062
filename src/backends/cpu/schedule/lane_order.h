// Whether lanes are elements of a row or rows: a model of what either costs.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Puts the outer dim along which rows should go side by side last, if that schedule suits one of them. Column sums are taken in
// the order of rows, so where there are any the order stays.
kernel::Kernel with_rows_arranged(kernel::Kernel kernel, const Machine& machine);

// Whether rows along the last outer dim can be lanes.
bool may_be_transposed(const kernel::Kernel& kernel);

// Rows that may go together, a lane each: a vector of them, or several if these fill. Not several with transpositions, gathers
// or column sums, which are made for one.
std::vector<int> group_sizes(const kernel::Kernel& kernel, int vector_bits);

// Whether groups of so many rows leave none over at the last outer dim's end.
bool fills_groups(const kernel::Kernel& kernel, int rows);

// Per arg: how neighbouring rows lie.
std::vector<LaneStep> lane_steps(const kernel::Kernel& kernel);

// The machine's widest vectors, or half of them where those fill; their lanes are rows where that costs less. The kernel's rows
// are arranged.
void choose_lanes(Schedule& schedule, const kernel::Kernel& kernel, const Machine& machine);

}  // namespace lamina::cpu
