// The library of primitives that the CPU backend runs heavy ops by.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// oneDNN; where lamina was built without it (LAMINA_ONEDNN=OFF), one that refuses every op and names that option.
std::shared_ptr<const PrimitiveLibrary> heavy_library();

}  // namespace lamina::cpu
