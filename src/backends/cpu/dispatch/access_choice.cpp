#include "backends/cpu/dispatch/access_choice.h"

#include <algorithm>

namespace lamina::cpu {

void AccessChoice::end(double nanoseconds) {
  if (is_trial_) {
    if (calls_ == kSettling || (calls_ > kSettling && nanoseconds < fastest_)) fastest_ = nanoseconds;
    if (++calls_ == kSettling + kCounted) end_trial();
  } else {
    last_[calls_++ % kCounted] = nanoseconds;
    left_ -= nanoseconds;
    if (left_ <= 0 && calls_ >= kCounted) begin_trial();
  }
  is_timing_.clear(std::memory_order_release);
}

// The codes take turns.
void AccessChoice::begin_trial() {
  tried_ = (tried_ + 1) % codes_;
  if (tried_ == present()) tried_ = (tried_ + 1) % codes_;
  is_trial_ = true;
  calls_ = 0;
}

void AccessChoice::end_trial() {
  const bool is_faster = fastest_ < kGain * *std::min_element(last_.begin(), last_.end());
  if (is_faster) present_.store(tried_, std::memory_order_relaxed);
  is_trial_ = false;
  left_ = kTrialsApart * static_cast<double>(kSettling + kCounted) * fastest_;
  calls_ = 0;
}

}  // namespace lamina::cpu
