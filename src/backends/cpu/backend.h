// CPU backends beside the one that everybody uses (cpu_backend()).
#pragma once

#include <memory>

#include "backends/backend.h"
#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// One that runs heavy ops by `library`; null: it refuses them.
std::unique_ptr<const Backend> make_backend(std::shared_ptr<const PrimitiveLibrary> library);

}  // namespace lamina::cpu
