// Finds the fastest schedule of a kernel on a device by measurement.
#pragma once

#include <cstddef>
#include <memory>

#include "backends/backend.h"
#include "backends/gpu/device.h"
#include "backends/gpu/schedule/schedule.h"
#include "backends/tune/schedule_search.h"
#include "kernels/kernel_ir.h"
#include "kernels/plan.h"

namespace lamina::gpu {

// In memory that it allocates on the device. The result is not cached. Throws Error.
TunedSchedule<Schedule> tune_kernel(const std::shared_ptr<Device>& device, const kernel::Kernel& kernel, double milliseconds,
                                    const TuningProgress& progress = nullptr);

// The same for each kernel step of a plan that has no cached result (or if `request.again`), and caches the results. Returns
// the number of kernels that were timed.
size_t tune_plan(const std::shared_ptr<Device>& device, const kernel::Plan& plan, const TuningRequest& request);

}  // namespace lamina::gpu
