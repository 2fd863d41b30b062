// All schedules that a kernel may use on a device: the product of the fields of schedule_fields.def. Which teams and groups
// exist depends on the device. The bits do not.
#pragma once

#include "backends/gpu/schedule/schedule.h"
#include "backends/schedule/legal_product.h"

namespace lamina::gpu {

// The input of the functions that compute a field's candidates.
struct ScheduleContext {
  const kernel::Kernel& kernel;
  SumOrder order;
  int largest_group;   // a power of two
  int cluster_groups;  // at most, in a cluster
  int local_bytes;     // of a work-group, at most
};

using LegalSchedules = LegalProduct<Schedule, ScheduleContext>;

// The kernel must outlive the result.
LegalSchedules legal_schedules(const kernel::Kernel& kernel, const DeviceLimits& limits);

}  // namespace lamina::gpu
