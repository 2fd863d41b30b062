// Single values inside the interpreter: loads, stores and maps. Not part of the module's interface.
#pragma once

#include <cstdint>
#include <span>

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// `real` contains f32 and f64 values (every float is a double), `integer` contains integers and booleans.
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

Scalar load_scalar(DataType dtype, const void* data, int64_t index);                    // in the compute type of dtype
void store_scalar(DataType dtype, Type type, void* data, int64_t index, Scalar value);  // `type` is the type of `value`
Scalar constant_scalar(const Node& node);
// operand_type: the type of operand 0
Scalar map_scalar(const Node& node, Type operand_type, std::span<const Scalar> operands);

// A NaN operand is returned. If both operands are zeros, the second is returned.
template <typename Real>
Real maximum(Real a, Real b) {
  return a != a || a > b ? a : b;
}
template <typename Real>
Real minimum(Real a, Real b) {
  return a != a || a < b ? a : b;
}

}  // namespace lamina::kernel
