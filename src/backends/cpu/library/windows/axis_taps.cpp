#include "backends/cpu/library/windows/axis_taps.h"

#include <algorithm>

namespace lamina::cpu {

void AxisTaps::add(std::span<const Tap> taps, float divisor) {
  taps_.insert(taps_.end(), taps.begin(), taps.end());
  begins_.push_back(taps_.size());
  divisors_.push_back(divisor);
}

bool AxisTaps::is_weighted() const {
  return std::any_of(taps_.begin(), taps_.end(), [](const Tap& tap) { return tap.weight != 1; });
}

int64_t AxisTaps::max_taps() const {
  int64_t most = 0;
  for (int64_t pixel = 0; pixel < size(); ++pixel) most = std::max(most, end(pixel) - begin(pixel));
  return most;
}

Range AxisTaps::inputs_of(Range outputs) const {
  Range range;
  if (outputs.size() == 0) return range;
  for (const Tap* tap = begin(outputs.begin); tap != end(outputs.end - 1); ++tap) {
    if (range.size() == 0) range = {tap->pixel, tap->pixel + 1};
    range = {std::min(range.begin, tap->pixel), std::max(range.end, tap->pixel + 1)};
  }
  return range;
}

// All sums are divided by the largest divisor, which most pixels have. Taps of pixels with another divisor get a weight.
AxisTaps AxisTaps::reversed(int64_t inputs) const {
  const float common = std::max(1.0F, *std::max_element(divisors_.begin(), divisors_.end()));
  std::vector<std::vector<Tap>> readers(static_cast<size_t>(inputs));
  for (int64_t pixel = 0; pixel < size(); ++pixel) {
    for (const Tap* tap = begin(pixel); tap != end(pixel); ++tap)
      readers[static_cast<size_t>(tap->pixel)].push_back({pixel, tap->weight * (common / divisor(pixel)), tap->number});
  }
  AxisTaps result;
  for (const std::vector<Tap>& taps : readers) result.add(taps, common);
  return result;
}

Taps reversed(const Taps& taps, const std::array<int64_t, 3>& inputs) {
  return {taps[0].reversed(inputs[0]), taps[1].reversed(inputs[1]), taps[2].reversed(inputs[2])};
}

AxisTaps window_taps(const WindowAxis& axis, Divisor divisor, int64_t tap_step) {
  AxisTaps result;
  std::vector<Tap> taps;
  for (int64_t position = 0; position < axis.positions; ++position) {
    const int64_t start = position * axis.stride - axis.pad_begin;
    const int64_t first = start >= 0 ? 0 : (-start + axis.dilation - 1) / axis.dilation;
    const int64_t inside = start >= axis.image ? 0 : (axis.image - 1 - start) / axis.dilation + 1;
    taps.clear();
    for (int64_t tap = first; tap < std::min(inside, axis.kernel); ++tap)
      taps.push_back({start + tap * axis.dilation, 1, static_cast<int32_t>(tap * tap_step)});
    const int64_t pixels = divisor == Divisor::window ? axis.kernel : static_cast<int64_t>(taps.size());
    result.add(taps, divisor == Divisor::one ? 1 : static_cast<float>(pixels));
  }
  return result;
}

// In integers: x = (2o + 1) inputs / (2 outputs) - 1/2, so the nearest pixel is x + 1/2 rounded down.
AxisTaps nearest_taps(int64_t inputs, int64_t outputs, Coordinates coordinates) {
  AxisTaps result;
  const bool aligned = coordinates == Coordinates::align_corners;
  const int64_t divisor = aligned ? std::max<int64_t>(2 * (outputs - 1), 1) : 2 * outputs;
  for (int64_t o = 0; o < outputs; ++o) {
    const int64_t pixel = aligned ? (2 * o * (inputs - 1) + (outputs - 1)) / divisor : (2 * o + 1) * inputs / divisor;
    result.add(std::array{Tap{std::min(pixel, inputs - 1)}}, 1);
  }
  return result;
}

// A pixel with weight 0 is not read, because an infinity there would make the sum NaN.
AxisTaps linear_taps(int64_t inputs, int64_t outputs, Coordinates coordinates) {
  AxisTaps result;
  const bool aligned = coordinates == Coordinates::align_corners;
  const auto in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  for (int64_t o = 0; o < outputs; ++o) {
    const auto at = static_cast<double>(o);
    const double exact = !aligned ? (at + 0.5) * in / out - 0.5 : outputs == 1 ? 0 : at * (in - 1) / (out - 1);
    const double x = std::clamp(exact, 0.0, in - 1);
    const auto below = static_cast<int64_t>(x);
    const double distance = x - static_cast<double>(below);
    const std::array around{Tap{below, static_cast<float>(1 - distance)}, Tap{below + 1, static_cast<float>(distance)}};
    result.add(std::span(around).first(around[1].weight > 0 ? 2 : 1), 1);
  }
  return result;
}

}  // namespace lamina::cpu
