// All schedules that a kernel may use on a machine: the product of the fields of schedule_fields.def. The values of a field
// depend on the kernel, the machine and the fields before it. All schedules give the same bits.
#pragma once

#include <array>
#include <cstddef>
#include <iterator>
#include <random>
#include <type_traits>
#include <vector>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// The index of a field in the list.
template <typename T>
constexpr size_t number_of(T Schedule::* field) {
  size_t number = 0, found = 0;
  for_each_field([&](const char*, const auto& other) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(other)>, T Schedule::*>) {
      if (other == field) found = number;
    }
    ++number;
  });
  return found;
}

constexpr size_t schedule_field_count() {
  size_t count = 0;
  for_each_field([&](const char*, const auto&) { ++count; });
  return count;
}

// The input of the functions that compute a field's candidates.
struct ScheduleContext {
  const kernel::Kernel& kernel;
  const Machine& machine;
  Footprint bytes;
  bool may_be_transposed, may_be_split;
};

class LegalSchedules {
 public:
  // Iterates over the product, and creates each schedule when it is reached.
  class Iterator {
   public:
    using value_type = Schedule;
    using difference_type = std::ptrdiff_t;
    explicit Iterator(const ScheduleContext& context);
    const Schedule& operator*() const { return schedule_; }
    Iterator& operator++();
    void operator++(int) { ++*this; }
    bool operator==(std::default_sentinel_t) const { return is_done_; }

   private:
    void fill_from(size_t field);
    const ScheduleContext* context_;
    Schedule schedule_;
    std::array<size_t, schedule_field_count()> choices_{}, counts_{};
    bool is_done_ = false;
  };

  // The kernel is a result of with_rows_arranged. The kernel and the machine must outlive this.
  LegalSchedules(const kernel::Kernel& kernel, const Machine& machine);

  Iterator begin() const { return Iterator(context_); }
  std::default_sentinel_t end() const { return {}; }
  bool contains(const Schedule& schedule) const;
  // A random schedule: each field gets any of its values.
  Schedule sample(std::mt19937_64& random) const;
  // The schedules in which one field has another value; later fields keep theirs if they are still legal. `schedule` is
  // legal.
  std::vector<Schedule> neighbours(const Schedule& schedule) const { return neighbours_from(0, schedule); }
  // The same for the fields from `first` on.
  template <typename T>
  std::vector<Schedule> neighbours(const Schedule& schedule, T Schedule::* first) const {
    return neighbours_from(number_of(first), schedule);
  }

 private:
  std::vector<Schedule> neighbours_from(size_t first, const Schedule& schedule) const;
  ScheduleContext context_;
};

inline LegalSchedules legal_schedules(const kernel::Kernel& kernel, const Machine& machine) { return {kernel, machine}; }

}  // namespace lamina::cpu
