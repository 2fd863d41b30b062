// The taps along one spatial axis of a pool or a resampling as a list per pixel of the output, without those that read nothing.
// Axes multiply: a pixel of the output reads every combination of its axes' taps.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace lamina::cpu {

struct Tap {
  int64_t pixel = 0;  // of the input
  float weight = 1;
  int32_t number = 0;  // its number within its window

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.pixel), visit(self.weight), visit(self.number);
  }
};

struct Range {
  int64_t begin = 0, end = 0;
  int64_t size() const { return end - begin; }
};

class TapLists {
 public:
  // Each of `pixels` pixels reads the pixel with its number.
  static TapLists each(int64_t pixels);
  // The next pixel of the output.
  void add(const std::vector<Tap>& taps, float divisor);

  int64_t size() const { return static_cast<int64_t>(divisors_.size()); }
  const Tap* begin(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel)]; }
  const Tap* end(int64_t pixel) const { return taps_.data() + begins_[static_cast<size_t>(pixel) + 1]; }
  float divisor(int64_t pixel) const { return divisors_[static_cast<size_t>(pixel)]; }

  bool is_weighted() const;
  int64_t tap_count() const { return static_cast<int64_t>(taps_.size()); }
  int64_t max_taps() const;  // of one pixel

  // From the first to the last pixel of the input that any of these pixels read; empty if none reads any.
  Range inputs_of(Range outputs) const;

  // Whether there is a list per pixel of the output, of pixels of the input.
  bool fits(int64_t inputs, int64_t outputs) const;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.begins_), visit(self.taps_), visit(self.divisors_);
  }

 private:
  std::vector<size_t> begins_{0};  // per pixel: the start of its taps; finally the end of the last
  std::vector<Tap> taps_;
  std::vector<float> divisors_;
};

using Taps = std::array<TapLists, 3>;  // per axis; with fewer than three, the first ones have one pixel

}  // namespace lamina::cpu
