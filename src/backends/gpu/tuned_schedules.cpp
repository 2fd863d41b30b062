#include "backends/gpu/tuned_schedules.h"

#include "backends/cache/sha256.h"
#include "backends/gpu/schedule/legal_schedules.h"
#include "interface/status.h"

namespace lamina::gpu::tuned_schedules {

namespace {

// The text of the default program tells one version of the emitter from another.
std::string key_of(const kernel::Kernel& kernel, const Device& device) {
  const DeviceLimits limits = device.limits();
  const KernelSource source = emit_kernel(kernel, choose_schedule(kernel, limits), device.language(), true, true);
  const std::string where = join(device.api(), " ", device.name(), ", groups of ", limits.max_group, ", ", limits.compute_units,
                                 " units, program ", sha256_hex(source.text), "\n");
  return tuned_texts::key_of(where, kernel);
}

}  // namespace

std::optional<TunedSchedule> find(const kernel::Kernel& kernel, const Device& device) {
  return find_tuned<Schedule>([&] { return key_of(kernel, device); }, [&] { return legal_schedules(kernel, device.limits()); });
}

void store(const kernel::Kernel& kernel, const Device& device, const TunedSchedule& tuned) {
  tuned_texts::store(key_of(kernel, device), text_of(tuned));
}

}  // namespace lamina::gpu::tuned_schedules
