// What work takes on the machine at hand, by short measurements with lamina's own kernels.
#pragma once

#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// On threads of `machine`, which runs here. Takes some 0.4 s, most of it for compiling, and up to 200 MiB of memory. Each
// figure is the least of several and, so that a bad minute does no harm, between half and twice the generic one. Not measured,
// but taken to lie where the generic ones do: the last level, whose speed is the neighbours', between the second and memory;
// `square`, `gather` and `stop` beside an addition. Throws Error(out_of_memory).
Costs measure_costs(const Machine& machine);

}  // namespace lamina::cpu
