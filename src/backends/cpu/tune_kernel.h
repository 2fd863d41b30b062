// Which schedule is the fastest for a kernel on this machine: found by trying.
#pragma once

#include <cstddef>
#include <functional>

#include "backends/backend.h"
#include "backends/cpu/code/tuned_schedules.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"
#include "kernels/plan.h"

namespace lamina::cpu {

// Of the time that is to be spent: 0 at first, 1 at the end.
using TuningProgress = std::function<void(double done)>;

// Times the schedule that would be chosen without measuring, then others that differ from the best so far in one field, as
// many as there is time for; compiling them is a part of it. What is better is taken only if it still is when both run in
// turns. The result is not kept anywhere (tuned_schedules::store). `kernel` need not be arranged. Throws Error(runtime_error)
// where the machine is not this one, (out_of_memory).
TunedSchedule tune_kernel(const kernel::Kernel& kernel, const Machine& machine, double milliseconds,
                          const TuningProgress& progress = nullptr);

// The same for each kernel of a plan that is a step by itself, of which nothing is kept yet or `request.again`; what is found
// is kept. (The kernels of a tile run on one thread, beside the products that their time goes to.) How many kernels were timed.
size_t tune_plan(const kernel::Plan& plan, const Machine& machine, const TuningRequest& request);

// The machine with its costs as they were measured here once, now if they were not: a quarter of a second. Throws
// Error(out_of_memory).
Machine with_measured_costs(Machine machine);

}  // namespace lamina::cpu
