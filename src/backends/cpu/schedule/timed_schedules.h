// Schedules among which a kernel's calls choose by their times (dispatch/access_choice.h), because what other programs leave
// of the last-level cache and of the memory's bandwidth decides which is faster.
#pragma once

#include <vector>

#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Whether a call moves more than the cores' own caches hold, and not so much more than the last level that only memory counts.
// Stores past the caches may then be slower or faster than stores through them.
bool stores_depend_on_others(const kernel::Kernel& kernel, const Machine& machine);

// Whether a call moves more than the last level holds. Then prefetches within a row, at a fixed distance, gain where memory is
// fast (up to a third of the time), and lose where it is slow (up to a tenth), compared with prefetches of the next rows during
// all walks.
bool prefetches_depend_on_others(const kernel::Kernel& kernel, const Machine& machine);

// The same machine while other programs fill its last-level cache.
Machine with_crowded_cache(Machine machine);

// `first`, a schedule of whole rows, then the others. Stores past the caches that join lines of several rows are timed at any
// size. `is_tuned`: the others keep its remaining fields.
std::vector<Schedule> timed_schedules(const Schedule& first, const kernel::Kernel& kernel, const Machine& machine,
                                      bool is_tuned);

}  // namespace lamina::cpu
