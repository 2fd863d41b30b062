// The common description of the six convolution ops. A window slides over an image. At position o (along an axis), its tap k
// is at pixel o * stride - pad + k * dilation of the image.
//
//   Convolution, ConvTransposeBackwardData                     compute positions from an image and weights
//   ConvolutionBackwardData, ConvTranspose                     compute an image from positions and weights
//   ConvolutionBackwardWeights, ConvTransposeBackwardWeights   compute weights from an image and positions
//
// Weights connect each channel of the positions with the channels of the image in its group.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/plan.h"

namespace lamina::cpu::onednn {

// A user's tensor with its axes in one order for any format: batch, channels, spatial axes (two or three; a single one gets
// an axis of extent 1 before it). Weights: channels of the positions, channels of the image per group, taps.
struct AxesInOrder {
  DataType dtype = DataType::undef;
  Dims dims, strides;
  size_t port = 0;  // the step's arg

  int64_t bytes(size_t axis, int64_t index) const { return bytes_of(dtype, index * strides[axis]); }
};

struct ConvolutionShape {
  enum class Made { positions, image, weights } made = Made::positions;
  AxesInOrder image, positions, weights;
  AxesInOrder bias;  // of rank 1; no dims: there is none
  int64_t groups = 1;
  // Per spatial axis. There may be more positions than in their tensor, because oneDNN requires as many as the window has
  // without leaving the image; missing ones are 0. An image may be larger too, with zeros before its tensor, which starts at
  // `image_at`. There are fewer positions if those at the end do not overlap the image.
  Dims image_extents, image_at, position_extents, kernel, strides, dilations, pads_begin;
  size_t slab_axis = 0;  // the spatial axis that is cut into slabs: the first one of the tensor

  bool makes_image() const { return made == Made::image; }
  int64_t batch() const { return image.dims[0]; }
  size_t spatial_rank() const { return kernel.size(); }
  // Pixels from the first tap to the last.
  int64_t reach(size_t axis) const { return (kernel[axis] - 1) * dilations[axis] + 1; }
  // Elements of all channels, for one image and for its positions.
  int64_t image_elements() const;
  int64_t position_elements() const;
  int64_t weight_elements() const;
  double operations() const;  // multiplications and additions per image
};

// `step` must be one of the six kinds, with every shape and stride known.
ConvolutionShape convolution_shape(const kernel::LibraryStep& step);

// Operands of following ops, with the axes of the output. Broadcast axes have extent 1 and stride 0.
std::vector<AxesInOrder> operands_in_order(const kernel::LibraryStep& step);

}  // namespace lamina::cpu::onednn
