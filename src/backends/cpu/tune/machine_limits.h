// The most that this machine reads and computes, measured by lamina's own kernels. Profiles compare steps with it.
#pragma once

#include "backends/backend.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Measured once per process and number of cores, in about 0.3 s and up to 100 MiB of memory. `machine` must run here. Throws
// Error(out_of_memory).
const MachineLimits& limits_of(const Machine& machine);

}  // namespace lamina::cpu
