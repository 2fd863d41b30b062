// Measures the costs of work on this machine by short runs of lamina's own kernels.
#pragma once

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Measures on the threads of `machine`, which must run here. Takes about 0.4 s, mostly for compiling, and up to 200 MiB of
// memory. Each figure is the minimum of several, limited to between half and twice the generic one, so that disturbances do
// little harm. Some figures are not measured but scaled like the generic ones: the last level, which other cores use too,
// between the second level and memory; `square`, `gather` and `stop` relative to an addition. Throws Error(out_of_memory).
Costs measure_costs(const Machine& machine);

}  // namespace lamina::cpu
