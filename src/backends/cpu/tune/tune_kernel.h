// Finds the fastest schedule of a kernel on this machine by measurement.
#pragma once

#include <cstddef>

#include "backends/backend.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/tune/schedule_search.h"
#include "kernels/kernel_ir.h"
#include "kernels/plan.h"

namespace lamina::cpu {

// Searches as described in backends/tune/schedule_search.h. The result is not cached (see store_tuned). `kernel`
// need not be arranged. Throws Error(runtime_error) if `machine` is not this machine, and Error(out_of_memory).
TunedSchedule<Schedule> tune_kernel(const kernel::Kernel& kernel, const Machine& machine, double milliseconds,
                                    const TuningProgress& progress = nullptr);

// The same for each kernel step of a plan that has no cached result (or if `request.again`), and caches the results. (Kernels
// of tiles are not tuned: they run on one thread, and products dominate their time.) Returns the number of kernels that were
// timed.
size_t tune_plan(const kernel::Plan& plan, const Machine& machine, const TuningRequest& request);

// The machine with costs that were measured here. Measures them, in a quarter of a second, if they are not cached. Throws
// Error(out_of_memory).
Machine with_measured_costs(Machine machine);

}  // namespace lamina::cpu
