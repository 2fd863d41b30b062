// Tuned schedules of GPUs (backends/tune/tuned_schedules.h): of a kernel with these extents on a device.
#pragma once

#include <optional>

#include "backends/gpu/device.h"
#include "backends/gpu/schedule/schedule.h"
#include "backends/tune/tuned_schedules.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

using TimedSchedule = lamina::TimedSchedule<Schedule>;
using TunedSchedule = lamina::TunedSchedule<Schedule>;

// Thread-safe.
namespace tuned_schedules {

// Nothing if there is no entry, or it is damaged or not legal for the kernel.
std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Device& device);
void store(const kernel::Kernel& kernel, const Device& device, const TunedSchedule& tuned);

}  // namespace tuned_schedules

}  // namespace lamina::gpu
