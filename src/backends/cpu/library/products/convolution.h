// Convolutions and their gradients by generated code.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

std::unique_ptr<const Primitive> generated_convolution(const kernel::WindowedContraction& contraction, const Machine& machine,
                                                       const PrimitiveUse& use);

}  // namespace lamina::cpu
