// What work takes on the machine at hand, by short measurements with lamina's own kernels.
#pragma once

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// On threads of `machine`, which runs here. Takes a tenth of a second, most of it for compiling, and up to 200 MiB of memory.
// Each figure is the least of several, so that what else runs disturbs little. What can not be measured by itself (`gather`,
// `stop`) goes with the time of an addition. Throws Error(out_of_memory).
Costs measure_costs(const Machine& machine);

}  // namespace lamina::cpu
