// Single values inside the interpreter: loads, stores and maps. Not part of the room's interface.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// f32 and f64 values stand in `real` (every float is a double), integers and booleans in `integer`.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

Scalar load_scalar(DataType dtype, const void* data, int64_t index);                    // in the dtype's compute type
void store_scalar(DataType dtype, Type type, void* data, int64_t index, Scalar value);  // `type` is the value's
Scalar constant_scalar(const Node& node);
Scalar map_scalar(const Node& node, Type operand_type, std::span<const Scalar> operands);  // operand_type: of operand 0

}  // namespace lamina::kernel
