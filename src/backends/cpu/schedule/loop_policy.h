// What the CPU keeps between the walks over a row.
#pragma once

#include "backends/cpu/schedule/schedule.h"
#include "kernels/loop_plan.h"

namespace lamina::cpu {

// The kernel and the schedule must outlive the policy.
kernel::LoopPolicy loop_policy(const kernel::Kernel& kernel, const Schedule& schedule);

// The elements of a live value per row: whole chunks of lanes.
int64_t live_row_size(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
