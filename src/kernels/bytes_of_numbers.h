// What is known of values that are only stored as integers, where NaN becomes 0.
#pragma once

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Whether node `index` is a maximum with 0, and what the kernel stores is the same if a NaN or -0 of it becomes 0. So it is if
// the value is only multiplied before it becomes an integer: ReLU before a quantisation without a zero point.
bool may_clear_nan(const Kernel& kernel, NodeIndex index);

// Whether the value is never NaN, if those for which may_clear_nan holds are not.
bool is_number(const Kernel& kernel, NodeIndex index);

}  // namespace lamina::kernel
