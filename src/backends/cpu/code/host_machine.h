// The machine that this process runs on.
#pragma once

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// With the best instruction set that it offers, capped by LAMINA_MAX_ISA, which names a target of its kind of processor
// (targets/target.h), and as many cores as OpenMP takes threads. What it does not tell of its caches is as Caches has it; its
// costs are those that were measured here (cached_costs.h), else generic ones. Throws Error(invalid_arguments) for a
// LAMINA_MAX_ISA that is none of these.
Machine host_machine();

// Whether code that is made for `machine` runs here.
bool host_runs(const Machine& machine);

}  // namespace lamina::cpu
