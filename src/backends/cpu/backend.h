// CPU backends other than the default one (cpu_backend()).
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// A backend that runs library ops by `library`; null: it refuses them.
std::unique_ptr<const Backend> make_backend(std::shared_ptr<const PrimitiveLibrary> library);

// A backend for a machine that may differ from this one; it can then compile but not run. All other backends compile for
// host_machine(), which is queried each time. Without `library`: it refuses library ops.
std::unique_ptr<const Backend> make_backend(const Machine& machine, std::shared_ptr<const PrimitiveLibrary> library = nullptr);

}  // namespace lamina::cpu
