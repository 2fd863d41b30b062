// Elementary functions as C functions of the dialect: the templates of kernels/math over variables of C text, one statement
// per operation.
#pragma once

#include <string>

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

}  // namespace lamina::gpu
