// What tuning a plan is on any device: which kernels are timed, and the values of their args.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

#include "backends/backend.h"
#include "backends/tune/schedule_search.h"
#include "kernels/kernel_ir.h"
#include "kernels/plan.h"

namespace lamina {

// Calls `tune` for each kernel step of the plan with elements for which `is_known` is false, or all if `request.again`. Returns
// their number.
size_t tune_kernels(const kernel::Plan& plan, const TuningRequest& request,
                    const std::function<bool(const kernel::Kernel& kernel)>& is_known,
                    const std::function<void(const kernel::Kernel& kernel, const TuningProgress& progress)>& tune);

// The bytes of `count` ordinary values of an arg, without NaN and subnormals, so that rare code paths do not run. Integers may
// be indices.
std::vector<std::byte> ordinary_values(const kernel::Kernel& kernel, const kernel::Arg& arg, int64_t count);

}  // namespace lamina
