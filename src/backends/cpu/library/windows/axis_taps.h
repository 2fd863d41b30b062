// The pixels of the input that each pixel of the output reads along one spatial axis, for pools, resampling, and their
// gradients, which read in the reverse direction. Axes multiply: a pixel of the output reads every combination of its axes'
// taps.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace lamina::cpu {

struct Tap {
  int64_t pixel = 0;  // of the input
  float weight = 1;
  int32_t number = 0;  // its number within its window
};

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class AxisTaps {
 public:
  // Adds the next pixel of the output. Its sum is divided by `divisor`.
  void add(std::span<const Tap> taps, float divisor);

  int64_t size() const { return static_cast<int64_t>(divisors_.size()); }
  const Tap* begin(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel)]; }
  const Tap* end(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel) + 1]; }
  float divisor(int64_t pixel) const { return divisors_[static_cast<size_t>(pixel)]; }

  bool is_weighted() const;
  int64_t tap_count() const { return static_cast<int64_t>(taps_.size()); }
  int64_t max_taps() const;  // of one pixel

  // From the first to the last pixel of the input that any of these pixels read; empty if none reads any.
  Range inputs_of(Range outputs) const;

  // The taps of the gradient: for each of `inputs` pixels, the pixels of the output that read it.
  AxisTaps reversed(int64_t inputs) const;

 private:
  std::vector<size_t> begins_{0};  // per pixel: the start of its taps; finally the end of the last
  std::vector<Tap> taps_;
  std::vector<float> divisors_;
};

using Taps = std::array<AxisTaps, 3>;  // per axis
Taps reversed(const Taps& taps, const std::array<int64_t, 3>& inputs);

// At position o, tap k of a window reads pixel o * stride - pad_begin + k * dilation of the image. Taps outside do not read.
struct WindowAxis {
  int64_t image, positions, kernel, stride, dilation, pad_begin;
};
enum class Divisor { one, window, pixels_inside };
// Taps are numbered in steps of `tap_step`, so that the sum of several axes' numbers identifies a tap.
AxisTaps window_taps(const WindowAxis& axis, Divisor divisor, int64_t tap_step = 1);

// Pixel o of `outputs` is at position x of the input, clamped to it:
//   half_pixel     x = (o + 1/2) * inputs / outputs - 1/2
//   align_corners  x = o * (inputs - 1) / (outputs - 1), 0 where outputs is 1
// It reads the nearest pixel (the later of two equally near pixels), or the two pixels around x, weighted by distance.
enum class Coordinates { half_pixel, align_corners };
AxisTaps nearest_taps(int64_t inputs, int64_t outputs, Coordinates coordinates);
AxisTaps linear_taps(int64_t inputs, int64_t outputs, Coordinates coordinates);

}  // namespace lamina::cpu
