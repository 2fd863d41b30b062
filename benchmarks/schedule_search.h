// Finds the fastest of a kernel's legal schedules by timing them. Defaults and tuning are compared with it.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/tune/tuned_schedules.h"
#include "kernels/kernel_ir.h"

namespace bench {

struct SearchLimits {
  double seconds = 2;                          // includes compiling
  size_t most = static_cast<size_t>(1) << 20;  // the most schedules that are timed
  uint64_t seed = 1;
};

struct SearchResult {
  std::vector<lamina::TimedSchedule<lamina::cpu::Schedule>>
      times;         // the best first, in microseconds per call, including the default
  size_t legal = 0;  // number of legal schedules
  bool saw_all = false;
};

// Times the default and `known` first, then all legal schedules in a random order that the seed determines. If four tenths of
// the time are not enough for all, it then times those that differ from the best so far in one field. The best dozen are
// timed again, in turns with the default, and come first in the result. `kernel` is arranged, and all runs use the same
// memory. Throws Error(runtime_error) if `machine` is not this machine, and Error(out_of_memory).
SearchResult search_schedules(const lamina::kernel::Kernel& kernel, const lamina::cpu::Machine& machine,
                              const SearchLimits& limits, const std::vector<lamina::cpu::Schedule>& known = {});

}  // namespace bench
