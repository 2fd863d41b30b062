// The machine that this process runs on.
#pragma once

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// The machine with its best instruction set, capped by LAMINA_MAX_ISA, which names a target of this architecture
// (targets/target.h), and with as many cores as OpenMP uses threads. Cache sizes that the system does not report have the
// defaults of Caches. Costs are those that were measured here (cached_costs.h), else generic ones. Throws
// Error(invalid_arguments) for another value of LAMINA_MAX_ISA.
Machine host_machine();

// Whether code for `machine` runs here, and is loaded.
bool host_runs(const Machine& machine);

}  // namespace lamina::cpu
