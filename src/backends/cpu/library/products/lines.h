// Convolutions along lines of an image: of each channel by itself, of few channels, or dense.
#pragma once

#include <memory>

#include "backends/cpu/library/primitive_library.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

// `columns_of_channel`: successive columns of `c` that have a channel by itself; 0: all columns share all channels.
// `is_matrix`: dst is one dense matrix. Returns null if tensors have other types or layouts than the code needs, or too many
// channels.
std::unique_ptr<const Primitive> line_convolution(const kernel::WindowedContraction& c, int columns_of_channel, bool is_matrix,
                                                  const Machine& machine, const PrimitiveUse& use);

}  // namespace lamina::cpu
