// The functions of kernels/math as C functions of the dialect: their templates over variables of C text, one statement per
// operation.
#pragma once

#include <string>
#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::gpu {

// Whether the map is an elementary function, for which a program contains a C function.
bool is_elementary(const kernel::Node& map);

// Its name: lm_exp_f32 for an exp of f32. A power has the bits of its exponent in its name.
std::string function_name(const kernel::Node& map);

struct FunctionText {
  std::string text;        // its definition
  bool needs_f64 = false;  // even if its operands are f32
};
FunctionText function_text(const kernel::Node& map);

// All conversions between floats and small floats, and those from floats to these integers. `wide`: those from f64, too.
std::string small_float_text(bool wide);
std::string integer_text(bool wide, const std::vector<DataType>& integers);
std::string philox_text();

}  // namespace lamina::gpu
