// The common description of the six convolution ops, for every backend. A window slides over an image. At position o (along an
// axis), its tap k is at pixel o * stride - pad + k * dilation of the image.
//
//   Convolution, ConvTransposeBackwardData                     compute positions from an image and weights
//   ConvolutionBackwardData, ConvTranspose                     compute an image from positions and weights
//   ConvolutionBackwardWeights, ConvTransposeBackwardWeights   compute weights from an image and positions
//
// Weights connect each channel of the positions with the channels of the image in its group.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "kernels/plan.h"

namespace lamina::kernel {

// A user's tensor with its axes in one order for any format: batch, channels, spatial axes. Weights: channels of the positions,
// channels of the image per group, taps.
struct AxesInOrder {
  DataType dtype = DataType::undef;
  Dims dims, strides;
  size_t port = 0;  // the step's arg

  int64_t bytes(size_t axis, int64_t index) const { return bytes_of(dtype, index * strides[axis]); }
  Dims spatial() const { return {dims.begin() + 2, dims.end()}; }
};

struct ConvolutionPorts {
  enum class Made { positions, image, weights } made = Made::positions;
  AxesInOrder image, positions, weights;
  AxesInOrder bias;  // of rank 1; no dims: there is none
  int64_t groups = 1;
  Dims strides, dilations, pads_begin;  // per spatial axis
};

std::vector<OpKind> convolution_kinds();
bool is_convolution(OpKind kind);

// `step` must be one of these kinds, with every shape and stride known.
ConvolutionPorts convolution_ports(const LibraryStep& step);

// Moves an axis of both lists.
void move_axis(AxesInOrder& tensor, size_t from, size_t to);

}  // namespace lamina::kernel
