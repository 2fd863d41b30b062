// Finds a legal schedule with some property, independent of the default choice: the test states the property that it needs.
#pragma once

#include "backends/cpu/schedule/legal_schedules.h"
#include "interface/status.h"

namespace lamina::testing {

// Returns the kernel's first schedule (after with_rows_arranged) for which `is_it` holds. Throws Error(runtime_error) if there
// is none.
template <typename IsIt>
cpu::Schedule schedule_with(const kernel::Kernel& kernel, const cpu::Machine& machine, const IsIt& is_it) {
  const kernel::Kernel arranged = cpu::with_rows_arranged(kernel, machine);
  for (const cpu::Schedule& schedule : cpu::legal_schedules(arranged, machine)) {
    if (is_it(schedule)) return schedule;
  }
  throw Error(Status::runtime_error, "no schedule of the kernel is such: " + kernel::print(kernel));
}

// Whether any legal schedule has the property.
template <typename IsIt>
bool may_have(const kernel::Kernel& kernel, const cpu::Machine& machine, const IsIt& is_it) {
  for (const cpu::Schedule& schedule : cpu::legal_schedules(kernel, machine)) {
    if (is_it(schedule)) return true;
  }
  return false;
}

}  // namespace lamina::testing
