// The memory of the values that stay live between the walks over a row (loop_policy.h). Each thread has its own. A little is on
// the thread's stack; else it is scratch memory of the call, which may be larger than a stack.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/schedule/schedule.h"
#include "kernels/loop_plan.h"

namespace lamina::cpu {

inline constexpr int64_t kLiveAlignment = 64;  // bytes; a chunk's vectors are aligned to their size, which is at most this

struct LiveValues {
  std::vector<int64_t> places;  // per node: bytes from the start of the thread's memory; -1: the node does not stay live
  int64_t bytes = 0;            // of a thread, a multiple of kLiveAlignment
  bool is_on_stack = true;
  int64_t scratch_bytes() const { return is_on_stack ? 0 : bytes; }
};

// `plan`: that of the schedule's policy. A node has the rows of a tile, each of live_row_size() elements or as many groups.
LiveValues live_values(const kernel::LoopPlan& plan, const Schedule& schedule);

}  // namespace lamina::cpu
