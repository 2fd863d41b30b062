// CPU backends beside the one that everybody uses (cpu_backend()).
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// One that runs library ops by `library`; null: it refuses them.
std::unique_ptr<const Backend> make_backend(std::shared_ptr<const PrimitiveLibrary> library);

// One for a machine that may not be this one: it compiles there what it cannot run here. All others compile for host_machine(),
// asked anew each time.
std::unique_ptr<const Backend> make_backend(const Machine& machine);

}  // namespace lamina::cpu
