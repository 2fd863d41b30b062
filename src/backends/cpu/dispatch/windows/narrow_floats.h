// Converts whole runs of elements from bf16 and f16 to f32 and back: rounded to nearest even, NaN stays NaN, subnormals are
// kept.
#pragma once

#include <cstdint>

#include "interface/data_type.h"

namespace lamina::cpu {

bool is_narrow_float(DataType dtype);  // bf16 or f16

// `count` elements, contiguous on both sides.
void widen(DataType from, const void* source, float* target, int64_t count);
void narrow(DataType to, const float* source, void* target, int64_t count);

}  // namespace lamina::cpu
