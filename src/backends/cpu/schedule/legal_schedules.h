// All schedules that a kernel may use on a machine: the product of the fields of schedule_fields.def.
#pragma once

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"
#include "backends/cpu/schedule/schedule.h"
#include "backends/schedule/legal_product.h"

namespace lamina::cpu {

// The input of the functions that compute a field's candidates.
struct ScheduleContext {
  const kernel::Kernel& kernel;
  const Machine& machine;
  Footprint bytes;
  bool may_be_transposed, may_be_split;
};

using LegalSchedules = LegalProduct<Schedule, ScheduleContext>;

// The kernel is a result of with_rows_arranged. The kernel and the machine must outlive the result.
LegalSchedules legal_schedules(const kernel::Kernel& kernel, const Machine& machine);

}  // namespace lamina::cpu
