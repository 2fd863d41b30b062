// The machine for which a step is compiled.
#pragma once

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

inline Machine machine_of(const PrimitiveUse& use) { return use.machine == nullptr ? host_machine() : *use.machine; }

}  // namespace lamina::cpu
