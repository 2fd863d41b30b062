// The taps along one spatial axis (interface/windows.h) as a list per pixel of the output, without those that read nothing.
// Axes multiply: a pixel of the output reads every combination of its axes' taps.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "interface/windows.h"

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

class TapLists {
 public:
  TapLists() : TapLists(AxisTaps{}, 1) {}  // one pixel, which reads one pixel
  // Taps are numbered in steps of `number_step`, so that the sum of several axes' numbers identifies a tap.
  TapLists(const AxisTaps& axis, int64_t number_step);

  int64_t size() const { return static_cast<int64_t>(divisors_.size()); }
  const Tap* begin(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel)]; }
  const Tap* end(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel) + 1]; }
  float divisor(int64_t pixel) const { return divisors_[static_cast<size_t>(pixel)]; }

  bool is_weighted() const;
  int64_t tap_count() const { return static_cast<int64_t>(taps_.size()); }
  int64_t max_taps() const;  // of one pixel

  // From the first to the last pixel of the input that any of these pixels read; empty if none reads any.
  Range inputs_of(Range outputs) const;

 private:
  std::vector<size_t> begins_{0};  // per pixel: the start of its taps; finally the end of the last
  std::vector<Tap> taps_;
  std::vector<float> divisors_;
};

using Taps = std::array<TapLists, 3>;  // per axis
// With fewer than three axes, the first ones have one pixel. `counts`: how many taps the windows have that number the taps.
Taps tap_lists_of(const Windows& windows, const Windows& counts);

}  // namespace lamina::cpu
