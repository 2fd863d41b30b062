#include "backends/cpu/library/windows/tap_lists.h"

#include <algorithm>

namespace lamina::cpu {

TapLists::TapLists(const AxisTaps& axis, int64_t number_step) {
  for (int64_t output = 0; output < axis.outputs; ++output) {
    for (int64_t tap = 0; tap < axis.count; ++tap)
      if (const int64_t pixel = axis.pixel(output, tap); pixel >= 0)
        taps_.push_back({pixel, static_cast<float>(axis.weight(output, tap)),
                         static_cast<int32_t>(axis.number(output, tap) * number_step)});
    begins_.push_back(taps_.size());
    divisors_.push_back(axis.divisor_of(output));
  }
}

bool TapLists::is_weighted() const {
  return std::any_of(taps_.begin(), taps_.end(), [](const Tap& tap) { return tap.weight != 1; });
}

int64_t TapLists::max_taps() const {
  int64_t most = 0;
  for (int64_t pixel = 0; pixel < size(); ++pixel) most = std::max(most, end(pixel) - begin(pixel));
  return most;
}

Range TapLists::inputs_of(Range outputs) const {
  Range range;
  if (outputs.size() == 0) return range;
  for (const Tap* tap = begin(outputs.begin); tap != end(outputs.end - 1); ++tap) {
    if (range.size() == 0) range = {tap->pixel, tap->pixel + 1};
    range = {std::min(range.begin, tap->pixel), std::max(range.end, tap->pixel + 1)};
  }
  return range;
}

Taps tap_lists_of(const Windows& windows, const Windows& counts) {
  Taps taps;
  int64_t number_step = 1;
  for (size_t axis = windows.axes.size(), place = taps.size(); axis-- > 0; number_step *= counts.axes[axis].count)
    taps[--place] = TapLists(windows.axes[axis], number_step);
  return taps;
}

}  // namespace lamina::cpu
