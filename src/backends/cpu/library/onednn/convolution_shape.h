// A convolution as oneDNN computes it: with two or three spatial axes (a single one gets an axis of extent 1 before it), and
// with the extents that oneDNN requires.
#pragma once

#include <cstdint>
#include <vector>

#include "kernels/convolution_ports.h"

namespace lamina::cpu::onednn {

using kernel::AxesInOrder;

struct ConvolutionShape : kernel::ConvolutionPorts {
  // Per spatial axis. There may be more positions than in their tensor, because oneDNN requires as many as the window has
  // without leaving the image; missing ones are 0. An image may be larger too, with zeros before its tensor, which starts at
  // `image_at`. There are fewer positions if those at the end do not overlap the image.
  Dims image_extents, image_at, position_extents, kernel;
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
