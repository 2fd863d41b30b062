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

int64_t live_row_size(const Kernel& kernel) {
  return (kernel.row_size() + numerics::kVirtualLanes - 1) / numerics::kVirtualLanes * numerics::kVirtualLanes;
}

// Live values are f32 or f64 and stay in the first-level cache. They are on the stack, so their size is limited.
kernel::LoopPolicy loop_policy(const Kernel& kernel, const Schedule& schedule) {
  using Stores = kernel::LoopPolicy::Stores;
  kernel::LoopPolicy policy{.moments_by_block = kernel::moments_by_block(kernel),
                            .stores = schedule.streamed.empty() ? Stores::late_functions : Stores::late};
  if (!is_one_run(kernel) || schedule.split) return policy;
  const int64_t bytes =
      live_row_size(kernel) * (schedule.transposed ? schedule.rows_per_group : 1) * (kernel.computes_in_f64() ? 8 : 4);
  policy.live_size = [&kernel, &schedule, bytes](const Node& n, CostClass cost) {
    const bool is_expensive = is_load(n) ? is_expensive_load(kernel, schedule, n.arg) : cost >= CostClass::function;
    return kernel::is_real(n.type) && is_expensive ? bytes : 0;
  };
  policy.live_space = schedule.transposed ? tuning::kLiveBytesTransposed : tuning::kLiveBytes / schedule.rows_per_tile;
  policy.keeps_users = true;
  return policy;
}

}  // namespace lamina::cpu
