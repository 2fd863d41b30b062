#include "backends/cpu/program/tap_lists.h"

#include <algorithm>

namespace lamina::cpu {

TapLists TapLists::each(int64_t pixels) {
  TapLists lists;
  for (int64_t pixel = 0; pixel < pixels; ++pixel) lists.add({Tap{.pixel = pixel}}, 1);
  return lists;
}

void TapLists::add(const std::vector<Tap>& taps, float divisor) {
  taps_.insert(taps_.end(), taps.begin(), taps.end());
  begins_.push_back(taps_.size());
  divisors_.push_back(divisor);
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

bool TapLists::fits(int64_t inputs, int64_t outputs) const {
  return size() == outputs && begins_.size() == divisors_.size() + 1 && begins_.front() == 0 &&
         begins_.back() == taps_.size() && std::is_sorted(begins_.begin(), begins_.end()) &&
         std::all_of(taps_.begin(), taps_.end(), [&](const Tap& tap) { return tap.pixel >= 0 && tap.pixel < inputs; });
}

}  // namespace lamina::cpu
