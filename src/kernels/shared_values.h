// In:    the kernels of a fusion group.
// Out:   the same, and in front of a kernel one more, of a single row: what all rows of the kernel share along their elements
//        and is dear to compute (a division, a root, a function of a value per channel) is computed once and read by every row.
// Keeps: every bit.
#pragma once

#include <vector>

#include "kernels/lower.h"

namespace lamina::kernel {

std::vector<LoweredKernel> with_shared_values_ahead(std::vector<LoweredKernel> kernels);

}  // namespace lamina::kernel
