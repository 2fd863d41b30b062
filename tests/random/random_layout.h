// How a tensor of a random graph is laid out in memory: all the ways that a port may have it.
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
  broadcast,      // one axis or more has stride 0
};
inline constexpr Layout kLayouts[] = {Layout::dense,  Layout::transposed, Layout::channels_last,
                                      Layout::padded, Layout::view,       Layout::broadcast};
std::string_view name_of(Layout layout);

// Strides of `shape` in that layout; those of a dense tensor where the shape is too small for it.
Dims strides_in(Layout layout, const Dims& shape, Rng& rng);

// The layout that a tensor of known strides has.
Layout layout_of(const LogicalTensor& tensor);

}  // namespace lamina::testing
