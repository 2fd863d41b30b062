// The library of primitives with which the CPU backend runs library ops.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"

namespace lamina::cpu {

// Products and convolutions by generated code and by oneDNN, whichever is faster; pools, resampling and ops along an axis by
// lamina's own loops. Without oneDNN (LAMINA_ONEDNN=OFF), everything runs too.
std::shared_ptr<const PrimitiveLibrary> default_primitive_library();

// The same without oneDNN, for exported models.
std::shared_ptr<const PrimitiveLibrary> exported_primitive_library();

}  // namespace lamina::cpu
