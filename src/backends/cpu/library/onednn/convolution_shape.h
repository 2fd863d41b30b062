// What the six convolution ops have in common: a window slides over an image; at position o (along an axis) its tap k lies on
// the pixel o * stride - pad + k * dilation of the image.
//
//   Convolution, ConvTransposeBackwardData                     make positions of an image and weights
//   ConvolutionBackwardData, ConvTranspose                     make an image of positions and weights
//   ConvolutionBackwardWeights, ConvTransposeBackwardWeights   make weights of an image and positions
//
// Weights join each channel of the positions with those channels of the image that are of its group.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/plan.h"

namespace lamina::cpu::onednn {

// A tensor of the user's with its axes in one order whatever the format: batch, channels, spatial axes (two or three: a single
// one comes with an axis of extent 1 in front). Weights: channels of the positions, channels of the image in a group, taps.
struct AxesInOrder {
  DataType dtype = DataType::undef;
  Dims dims, strides;
  size_t port = 0;  // which arg of the step it is

  int64_t bytes(size_t axis, int64_t index) const { return bytes_of(dtype, index * strides[axis]); }
};

struct ConvolutionShape {
  enum class Made { positions, image, weights } made = Made::positions;
  AxesInOrder image, positions, weights;
  AxesInOrder bias;  // of rank 1; no dims: there is none
  int64_t groups = 1;
  // Per spatial axis. Positions may be more than their tensor holds: those that are missing are 0. oneDNN wants as many as
  // the window has without leaving the image. So may an image, from `image_at` zeros before what its tensor holds. Positions
  // are fewer where those at the end see nothing of the image.
  Dims image_extents, image_at, position_extents, kernel, strides, dilations, pads_begin;
  size_t slab_axis = 0;  // the spatial axis that is cut into slabs: the first that is not put in front

  bool makes_image() const { return made == Made::image; }
  int64_t batch() const { return image.dims[0]; }
  size_t spatial_rank() const { return kernel.size(); }
  // Pixels from the first tap to the last.
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // Elements of all channels of one image, and of its positions.
  int64_t image_elements() const;
  int64_t position_elements() const;
  int64_t weight_elements() const;
  double operations() const;  // multiplications and additions for one image
};

// `step` is of one of the six kinds, every shape and stride known.
ConvolutionShape convolution_shape(const kernel::LibraryStep& step);

// Operands of what follows, with the axes of what is made: where one is broadcast, its extent is 1 and its stride 0.
std::vector<AxesInOrder> operands_in_order(const kernel::LibraryStep& step);

}  // namespace lamina::cpu::onednn
