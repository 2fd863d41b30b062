#include "backends/cpu/schedule/timed_schedules.h"

#include <algorithm>
#include <utility>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/tiles.h"

namespace lamina::cpu {

namespace {

using kernel::Kernel;

int64_t bytes_of_own_caches(const Machine& machine) { return machine.caches.second * std::max(machine.cores, 1); }

// The schedule with stores of the other kind, if it has a kind.
Schedule with_other_stores(const Schedule& schedule, const Kernel& kernel, const Machine& machine, bool is_tuned) {
  if (schedule.streamed.empty()) return choose_schedule(kernel, with_crowded_cache(machine), true);
  return is_tuned ? without_streaming(schedule) : choose_schedule(kernel, machine, false);
}

// The schedule with prefetches within rows, or without them and with prefetches of the next rows.
Schedule with_other_prefetches(Schedule schedule, const Kernel& kernel) {
  if (schedule.prefetched_within_row.empty()) {
    schedule.prefetched_within_row = inputs_along_rows(kernel);
    std::erase_if(schedule.prefetched_within_row, [&](int a) { return !varies_by_row(kernel, kernel.arg(a)); });
  } else {
    schedule.prefetched_within_row.clear();
    schedule.ahead_in_row = Schedule{}.ahead_in_row;
    schedule.prefetches_rows = true;
  }
  return schedule;
}

}  // namespace

bool stores_depend_on_others(const Kernel& kernel, const Machine& machine) {
  constexpr int64_t kMostOfLast = 4;
  const int64_t bytes = moved_bytes(kernel);
  return bytes > bytes_of_own_caches(machine) && bytes < kMostOfLast * machine.caches.last;
}

bool prefetches_depend_on_others(const Kernel& kernel, const Machine& machine) {
  return machine.caches.last > 0 && moved_bytes(kernel) > machine.caches.last;
}

Machine with_crowded_cache(Machine machine) {
  machine.caches.last = bytes_of_own_caches(machine);
  return machine;
}

std::vector<Schedule> timed_schedules(const Schedule& first, const Kernel& kernel, const Machine& machine, bool is_tuned) {
  std::vector<Schedule> schedules{first};
  const bool joins_lines = first.realigns || first.follows_lines;  // work that pays where memory is slow
  if (stores_depend_on_others(kernel, machine) || joins_lines) {
    Schedule other = with_other_stores(first, kernel, machine, is_tuned);
    if (other.streamed.empty() != first.streamed.empty()) schedules.push_back(std::move(other));
  }
  // Threads that share rows prefetch them in another way.
  if (prefetches_depend_on_others(kernel, machine) && may_prefetch_rows(kernel, first) &&
      !gains_by_split(first, kernel, machine, machine.cores)) {
    Schedule other = with_other_prefetches(first, kernel);
    if (legal_schedules(kernel, machine).contains(other)) schedules.push_back(std::move(other));
  }
  return schedules;
}

}  // namespace lamina::cpu
