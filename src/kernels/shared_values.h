// In:    the kernels of a fusion group.
// Out:   the same kernels, and possibly one more kernel of a single row before one of them. It computes once the values that
//        all rows share and that are expensive (a division, a root, a function of a value per channel). Every row then loads
//        them.
// Keeps: every bit.
#pragma once

#include <vector>

#include "kernels/lower.h"

namespace lamina::kernel {

std::vector<LoweredKernel> with_shared_values_ahead(std::vector<LoweredKernel> kernels);

}  // namespace lamina::kernel
