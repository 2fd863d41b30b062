// Convolutions along lines of an image: of each channel by itself, or of few channels.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

// `is_depthwise`: the groups of the convolution are the columns of `c`. `is_matrix`: dst is one dense matrix. Returns null if
// tensors have other types or layouts than the code needs, or too many channels.
std::unique_ptr<const Primitive> line_convolution(const kernel::WindowedContraction& c, bool is_depthwise, bool is_matrix,
                                                  const Machine& machine, const PrimitiveUse& use);

}  // namespace lamina::cpu
