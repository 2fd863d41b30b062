// Memory layouts of tensors in random graphs: all layouts that a port accepts.
#pragma once

#include <string_view>

#include "interface/logical_tensor.h"
#include "random/rng.h"

namespace lamina::testing {

enum class Layout {
  dense,          // row-major, without gaps
  transposed,     // the axes in another order, without gaps
  channels_last,  // axis 1 is the innermost, as NHWC is for a shape in the order NCHW
  padded,         // gaps between rows
  view,           // gaps between entries of any axis, axes in any order: a slice of a larger tensor
  broadcast,      // at least one axis has stride 0
};
inline constexpr Layout kLayouts[] = {Layout::dense,  Layout::transposed, Layout::channels_last,
                                      Layout::padded, Layout::view,       Layout::broadcast};
std::string_view name_of(Layout layout);

// The fewest axes of a tensor with that layout.
size_t least_rank(Layout layout);

// Returns the strides of `shape` in that layout, or dense strides if the shape is too small for it.
Dims strides_in(Layout layout, const Dims& shape, Rng& rng);

// Returns the layout of a tensor with known strides.
Layout layout_of(const LogicalTensor& tensor);

}  // namespace lamina::testing
