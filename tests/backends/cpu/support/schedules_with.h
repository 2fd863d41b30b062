// A legal schedule of some kind, independent of the model's choice, so that a test states its schedule.
#pragma once

#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "interface/status.h"

namespace lamina::testing {

// The first one of the kernel, as with_rows_arranged leaves it, that `is_it`. Throws Error(runtime_error) where none is.
template <typename IsIt>
cpu::Schedule schedule_with(const kernel::Kernel& kernel, const cpu::Machine& machine, const IsIt& is_it) {
  const kernel::Kernel arranged = cpu::with_rows_arranged(kernel, machine);
  for (const cpu::Schedule& schedule : cpu::legal_schedules(arranged, machine)) {
    if (is_it(schedule)) return schedule;
  }
  throw Error(Status::runtime_error, "no schedule of the kernel is such: " + kernel::print(kernel));
}

// Whether any is.
template <typename IsIt>
bool may_have(const kernel::Kernel& kernel, const cpu::Machine& machine, const IsIt& is_it) {
  for (const cpu::Schedule& schedule : cpu::legal_schedules(kernel, machine)) {
    if (is_it(schedule)) return true;
  }
  return false;
}

}  // namespace lamina::testing
