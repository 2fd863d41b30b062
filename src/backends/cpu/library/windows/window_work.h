// The work of pools and resampling: each pixel of the output is computed from some pixels of an input, axis by axis.
#pragma once

#include "backends/cpu/library/windows/image_tensor.h"
#include "backends/cpu/library/windows/tap_lists.h"

namespace lamina::cpu {

struct ImagePort {
  size_t arg = 0;  // arg number of the step
  ImageTensor tensor{};
};

struct WindowWork {
  enum class Kind { weighted_sum, maximum, gradient_of_maximum };
  Kind kind = Kind::weighted_sum;
  ImagePort input{}, output{};
  Taps taps{};  // per axis: the input pixels that the output's pixels read
  // For gradient_of_maximum, which reads diff_dst: src, and the pixels of src that the windows (the pixels of diff_dst) read.
  ImagePort image{};
  Taps windows{};

  bool has_image() const { return kind == Kind::gradient_of_maximum; }
};

}  // namespace lamina::cpu
