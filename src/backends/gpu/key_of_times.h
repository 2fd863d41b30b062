// What tuned schedules of a device depend on (backends/tune/tuned_schedules.h).
#pragma once

#include <string>

#include "backends/gpu/device.h"
#include "backends/gpu/schedule/legal_schedules.h"

namespace lamina::gpu {

// What times depend on besides the kernel: the device, and a hash of the emitter's sources.
std::string key_of_times(const Device& device);

inline LegalSchedules legal_schedules(const kernel::Kernel& kernel, const Device& device) {
  return legal_schedules(kernel, device.limits());
}

}  // namespace lamina::gpu
