// Kernels that may run on parts of a library step's result.
#pragma once

#include <vector>

#include "kernels/plan.h"

namespace lamina::kernel {

// Sets KernelStep::follows_parts of kernels after a library step whose elements each depend on one element of the step's
// result: elementwise ops after a convolution or a product.
void mark_following_kernels(std::vector<PlanStep>& steps);

}  // namespace lamina::kernel
