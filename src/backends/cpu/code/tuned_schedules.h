// Tuned schedules of the CPU (backends/tune/tuned_schedules.h): of a kernel with these extents on a machine with its number of
// cores.
#pragma once

#include <optional>
#include <string_view>

#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/tune/tuned_schedules.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

using TimedSchedule = lamina::TimedSchedule<Schedule>;
using TunedSchedule = lamina::TunedSchedule<Schedule>;

// Thread-safe. The kernels' rows must be arranged.
namespace tuned_schedules {

// Nothing if there is no entry, or it is damaged or not legal for the kernel.
std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Machine& machine);
void store(const kernel::Kernel& kernel, const Machine& machine, const TunedSchedule& tuned);

}  // namespace tuned_schedules

}  // namespace lamina::cpu
