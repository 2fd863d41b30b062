// Weight gradients of convolutions of each channel by itself (depthwise).
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

// Null if `c` is something else, or a tap's row has too many taps for the registers.
std::unique_ptr<const Primitive> depthwise_weight_gradient(const kernel::WindowedContraction& c, const Machine& machine,
                                                           const PrimitiveUse& use);

}  // namespace lamina::cpu
