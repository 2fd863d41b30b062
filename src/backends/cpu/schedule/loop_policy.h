// What the CPU keeps between the walks over a row.
#pragma once

#include "backends/cpu/schedule/schedule.h"
#include "kernels/loop_plan.h"

namespace lamina::cpu {

// The kernel and the schedule must outlive the policy.
kernel::LoopPolicy loop_policy(const kernel::Kernel& kernel, const Schedule& schedule);

// The bytes of a tile, or of a group of rows across lanes, that may stay live. Values of a function may take more: each byte
// counts for kLiveBytesOfFunctions / live_space() of theirs.
int64_t live_space(const Schedule& schedule);

// The elements of a live value per row: whole chunks of lanes.
int64_t live_row_size(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
