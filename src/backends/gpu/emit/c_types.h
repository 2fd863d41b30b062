// Types, constants and conversions as expressions of the dialect.
#pragma once

#include <string>

#include "kernels/kernel_ir.h"

namespace lamina::gpu {

const char* c_type(kernel::Type type);     // lm_f32
const char* suffix_of(kernel::Type type);  // f32: the suffix of functions for that type
std::string storage_type(DataType dtype);  // lm_u16

std::string constant(double value, kernel::Type type);
std::string from_storage(DataType dtype, const std::string& raw);  // in the compute type
std::string to_storage(DataType dtype, kernel::Type type, const std::string& value);
std::string cast_value(kernel::Type from, kernel::Type to, const std::string& value);

}  // namespace lamina::gpu
