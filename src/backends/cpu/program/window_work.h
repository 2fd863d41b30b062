// Pools and resampling as data: each pixel of the output is computed from some pixels of an input, axis by axis.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "backends/cpu/program/bytes.h"
#include "backends/cpu/program/tap_lists.h"
#include "interface/data_type.h"

namespace lamina::cpu {

using Box = std::array<Range, 3>;  // of pixels, per axis

inline int64_t pixel_count(const Box& box) { return box[0].size() * box[1].size() * box[2].size(); }

// A tensor as pixels of lanes: a pixel is a position in an image, its lanes are the channels there. Strides are in elements.
struct ImageTensor {
  DataType dtype = DataType::f32;
  int64_t images = 1, channels = 1, image_stride = 0, channel_stride = 0;
  std::array<int64_t, 3> extents{1, 1, 1}, strides{};  // of the spatial axes; with fewer than three, the first have one pixel

  Box whole() const { return {Range{0, extents[0]}, Range{0, extents[1]}, Range{0, extents[2]}}; }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.dtype), visit(self.images), visit(self.channels), visit(self.image_stride), visit(self.channel_stride);
    for (size_t axis = 0; axis < self.extents.size(); ++axis) visit(self.extents[axis]), visit(self.strides[axis]);
  }
};

struct ImagePort {
  size_t arg = 0;  // arg number of the step
  ImageTensor tensor = {};

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.arg), visit(self.tensor);
  }
};

struct WindowWork {
  enum class Kind { weighted_sum, maximum, gradient_of_maximum };
  Kind kind = Kind::weighted_sum;
  ImagePort input = {}, output = {};
  Taps taps = {};  // per axis: the input pixels that the output's pixels read
  // For gradient_of_maximum, which reads diff_dst: src, and the pixels of src that the windows (the pixels of diff_dst) read.
  ImagePort image = {};
  Taps windows = {};
  int threads = 1;  // at most

  bool has_image() const { return kind == Kind::gradient_of_maximum; }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.kind), visit(self.input), visit(self.output), visit(self.image), visit(self.threads);
    for (auto& axis : self.taps) visit(axis);
    for (auto& axis : self.windows) visit(axis);
  }
};

template <>
inline constexpr int kLastEnumerator<WindowWork::Kind> = static_cast<int>(WindowWork::Kind::gradient_of_maximum);

}  // namespace lamina::cpu
