// A sliding window over an image, for convolutions and pools. At position o (a pixel of the result of a convolution or pool),
// tap k of the window is at pixel o * stride - pad + k * dilation of the image, along each spatial axis.
#pragma once

#include <vector>

#include "backends/reference/op_run.h"

namespace lamina::reference {

struct Window {
  Dims image, positions, kernel;        // extents per spatial axis
  Dims strides, dilations, pads_begin;  // the same

  int64_t image_count() const { return count_of(image, 0, image.size()); }
  int64_t tap_count() const { return count_of(kernel, 0, kernel.size()); }
};

inline constexpr int64_t kOutside = -1;

// From the op's attributes. `transposed`: auto_pad computes pads by the rule of ConvTranspose.
Window window_of(const OpRun& run, const Dims& image, const Dims& positions, const Dims& kernel, bool transposed = false);

// For each position and tap, at [position * taps + tap]: the pixel of the image, or kOutside.
std::vector<int64_t> pixels_of_positions(const Window& window);
// For each pixel and tap, at [pixel * taps + tap]: the position whose tap is at the pixel, or kOutside.
std::vector<int64_t> positions_of_pixels(const Window& window);

}  // namespace lamina::reference
