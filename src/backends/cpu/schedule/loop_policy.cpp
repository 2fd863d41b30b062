#include "backends/cpu/schedule/loop_policy.h"

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

using kernel::CostClass;
using kernel::Kernel;
using kernel::Node;

namespace {

// Whether a load converts its elements or reads them one by one, and other rows do not read the same ones.
bool is_expensive_load(const Kernel& kernel, const Schedule& schedule, int a) {
  const kernel::Arg& arg = kernel.arg(a);
  const bool converts = bits_of(arg.dtype) < 32 && (schedule.keeps_conversions || schedule.transposed);
  const bool is_apart =
      schedule.transposed ? schedule.lane_steps[static_cast<size_t>(a)] == LaneStep::other : arg.strides.back() != 1;
  return varies_by_row(kernel, arg) && (converts || is_apart);
}

}  // namespace

int64_t live_space(const Schedule& schedule) { return schedule.transposed ? tuning::kLiveBytesTransposed : tuning::kLiveBytes; }

int64_t live_row_size(const Kernel& kernel) {
  return (kernel.row_size() + numerics::kVirtualLanes - 1) / numerics::kVirtualLanes * numerics::kVirtualLanes;
}

// Live values are f32 or f64. Converted elements are worth the first-level cache, those of a function also a larger one: what
// they take of the space is the fraction of their own limit.
kernel::LoopPolicy loop_policy(const Kernel& kernel, const Schedule& schedule) {
  using Stores = kernel::LoopPolicy::Stores;
  kernel::LoopPolicy policy{.moments_by_block = kernel::moments_by_block(kernel),
                            .stores = schedule.streamed.empty() ? Stores::late_functions : Stores::late};
  if (!is_one_run(kernel) || schedule.split) return policy;
  const int64_t rows = schedule.transposed ? schedule.rows_per_group : schedule.rows_per_tile;
  const int64_t bytes = live_row_size(kernel) * rows * (kernel.computes_in_f64() ? 8 : 4);
  const int64_t space = live_space(schedule),
                of_function = (bytes * space + tuning::kLiveBytesOfFunctions - 1) / tuning::kLiveBytesOfFunctions;
  policy.live_size = [&kernel, &schedule, bytes, of_function](const Node& n, CostClass cost) -> int64_t {
    if (!kernel::is_real(n.type)) return 0;
    if (is_load(n)) return is_expensive_load(kernel, schedule, n.arg) ? bytes : 0;
    return cost >= CostClass::function ? of_function : 0;
  };
  policy.live_space = space;
  policy.keeps_users = true;
  return policy;
}

}  // namespace lamina::cpu
