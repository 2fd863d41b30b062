// The call of a split kernel, and the memory that it needs.
#pragma once

#include <cstdint>

#include "backends/cpu/program/kernel_function.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

int64_t split_state_bytes(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
