// The results of tuning: the fastest schedule of a kernel with these extents on this machine, with the measured times. Cached
// in the process and, if there is a cache on disk, with the machine code (backends/cache/code_cache.h).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct TimedSchedule {
  Schedule schedule;
  double microseconds = 0;  // per call
  bool operator==(const TimedSchedule&) const = default;
};

struct TunedSchedule {
  TimedSchedule chosen, by_default;
  std::vector<TimedSchedule> others;
  bool operator==(const TunedSchedule&) const = default;
};

// Thread-safe. The kernels' rows must be arranged.
namespace tuned_schedules {

// The entry for this kernel on this machine with its number of cores. Nothing if there is no entry, or it is damaged or not
// legal for the kernel. The disk is read once for each kernel: what another process stores there afterwards, only later
// processes find.
std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Machine& machine);

// Replaces the previous entry.
void store(const kernel::Kernel& kernel, const Machine& machine, const TunedSchedule& tuned);

// Clears the cache of the process, not that on disk. For tests.
void forget();

}  // namespace tuned_schedules

// The format on disk: one time and description per line, the chosen schedule first, then the default.
std::string text_of(const TunedSchedule& tuned);
std::optional<TunedSchedule> tuned_schedule_of(std::string_view text);

}  // namespace lamina::cpu
