// The library of primitives with which the CPU backend runs library ops.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// Products and convolutions by oneDNN; products that it does not run by generated code; pools, resampling and indexed reads by
// lamina's own loops. If lamina was built without oneDNN (LAMINA_ONEDNN=OFF), it refuses convolutions and names that option.
std::shared_ptr<const PrimitiveLibrary> default_primitive_library();

}  // namespace lamina::cpu
