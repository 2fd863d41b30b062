#include "backends/gpu/key_of_times.h"

#include "code_version.h"  // generated: cmake/code_version.cmake
#include "interface/status.h"

namespace lamina::gpu {

std::string key_of_times(const Device& device) {
  const DeviceLimits limits = device.limits();
  return join(device.api(), " ", device.name(), ", groups of ", limits.max_group, ", ", limits.compute_units,
              " units\nlamina " LAMINA_VERSION ", emitter " LAMINA_GPU_EMITTER_HASH "\n");
}

}  // namespace lamina::gpu
