// What is known of values that are only stored as integers, where NaN becomes 0.
#pragma once

#include "kernels/kernel_ir.h"

namespace lamina::kernel {

// Whether node `index` is a maximum with 0, and what the kernel stores is the same if a NaN or -0 of it becomes 0. So it is if
// the value is only multiplied before it becomes an integer: ReLU before a quantisation without a zero point.
bool may_clear_nan(const Kernel& kernel, NodeIndex index);

// What is known of a value: it is never NaN; it also is at least 0.
enum class NumberRange { any, numbers, nonnegative };

// Of the value, if those for which may_clear_nan holds are never NaN.
NumberRange range_of(const Kernel& kernel, NodeIndex index);

}  // namespace lamina::kernel
