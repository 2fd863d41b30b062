// What measuring has found: which schedule a kernel of these extents runs by on this machine, with the times that say so. Kept
// for the process and, where there is a cache on disk, beside the machine code (backends/cache/code_cache.h).
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
  double microseconds = 0;  // of a call
  bool operator==(const TimedSchedule&) const = default;
};

struct TunedSchedule {
  TimedSchedule chosen, by_default;
  std::vector<TimedSchedule> others;
  bool operator==(const TunedSchedule&) const = default;
};

// Thread-safe. The kernels' rows are arranged.
namespace tuned_schedules {

// What is kept for this kernel on this machine, its number of cores included. Nothing where nothing is, or what is there is
// damaged or not legal for the kernel.
std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Machine& machine);

// In the place of what was kept before.
void store(const kernel::Kernel& kernel, const Machine& machine, const TunedSchedule& tuned);

// What the process keeps in memory is forgotten; the disk is not. For tests.
void forget();

}  // namespace tuned_schedules

// As it lies on disk: a time and a description a line, the chosen one first, then the default.
std::string text_of(const TunedSchedule& tuned);
std::optional<TunedSchedule> tuned_schedule_of(std::string_view text);

}  // namespace lamina::cpu
