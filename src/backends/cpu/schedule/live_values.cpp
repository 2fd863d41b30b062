#include "backends/cpu/schedule/live_values.h"

#include "backends/cpu/schedule/loop_policy.h"
#include "backends/cpu/schedule/tuning.h"
#include "kernels/numerics.h"

namespace lamina::cpu {

// A walk along lines may read one vector past the last element, so a chunk follows each node's values.
LiveValues live_values(const kernel::LoopPlan& plan, const Schedule& schedule) {
  const kernel::Kernel& kernel = plan.kernel();
  const int64_t rows = schedule.transposed ? schedule.rows_per_group : schedule.rows_per_tile;
  const int64_t elements = live_row_size(kernel) * rows + numerics::kVirtualLanes;
  LiveValues live{.places = std::vector<int64_t>(kernel.nodes.size(), -1)};
  for (size_t i = 0; i < kernel.nodes.size(); ++i) {
    if (plan.live_since(static_cast<kernel::NodeIndex>(i)) < 0) continue;
    live.places[i] = live.bytes;
    live.bytes += elements * (kernel.nodes[i].type == kernel::Type::f64 ? 8 : 4);
  }
  live.is_on_stack = live.bytes <= tuning::kLiveBytesOnStack;
  return live;
}

}  // namespace lamina::cpu
