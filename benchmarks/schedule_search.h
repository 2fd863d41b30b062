// The fastest of a kernel's legal schedules, found by timing them: what defaults and tuning are measured by.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/code/tuned_schedules.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"

namespace bench {

struct SearchLimits {
  double seconds = 2;                          // compiling is a part of it
  size_t most = static_cast<size_t>(1) << 20;  // of schedules that are timed
  uint64_t seed = 1;
};

struct SearchResult {
  std::vector<lamina::cpu::TimedSchedule> times;  // the best first, in a call's microseconds; the default among them
  size_t legal = 0;                               // how many there are
  bool saw_all = false;
};

// The default and `known` are timed first, then all legal schedules in an order that is drawn by the seed; where four tenths of
// the time are not enough for all of them, then those that differ from the best so far in one field. The best dozen are timed
// again, in turns with the default, and stand in front. `kernel` is arranged, and all runs are over the same memory.
// Throws Error(runtime_error) where the machine is not this one, (out_of_memory).
SearchResult search_schedules(const lamina::kernel::Kernel& kernel, const lamina::cpu::Machine& machine,
                              const SearchLimits& limits, const std::vector<lamina::cpu::Schedule>& known = {});

}  // namespace bench
