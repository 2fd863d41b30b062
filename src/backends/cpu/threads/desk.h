// A call puts its work on a desk, calls helpers, and takes units like they do. Helpers that find units on a desk join it, take
// units until there are none, and leave. Who ends the last unit of a stage deals the next one. The caller closes the desk when
// the last stage has ended, and waits for helpers that have joined and not left: these are between two units, or after their
// last.
//
// Desks are static memory that is never given back: looking at a desk that was closed meanwhile is harmless, joining it is
// refused. Where a word is read after another was written and the other way round by another thread (who sleeps, and is there
// work), both are sequentially consistent, so that one of the two sees the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "backends/cpu/threads/look_out.h"
#include "backends/cpu/threads/ranges.h"
#include "backends/cpu/threads/work.h"

namespace lamina::cpu {

constexpr int kMostHelpers = 1023;

// What a call and those who help it share.
class Desk {
 public:
  // For a stage that helpers are wanted for, so many more.
  using CallHelpers = void (*)(int wanted);

  // Stages first to stages - 1 of the work, for the caller and threads - 1 helpers.
  void open(SharedWork& work, int64_t first, int64_t stages, int threads, CallHelpers call_helpers);
  // When all has ended and all helpers have left, nobody sees the work any more.
  void close();

  bool has_units() const { return (state_.load() & kOpen) != 0 && units_.has_any(stage_.load()); }

  // Slot 0. Returns when the last stage has ended.
  void work_as_caller();
  // Whether there was something to do. No two helpers at once have the same number.
  bool work_as_helper(int helper);

  // In the child of a fork: nobody is here.
  void forget();

 private:
  // Of the state: helpers that have joined, helpers that may, and whether they may.
  static constexpr uint64_t kOpenJoined = uint64_t{1} << 16, kOpen = uint64_t{1} << 32;
  static constexpr int kHelpersAt = 16;

  int wanted() const { return static_cast<int>(helpers_); }
  bool join();
  void leave(int slot);
  int take_slot(int helper);

  int64_t work_at(int64_t stage, int slot);
  void go_on(int64_t stage);
  void deal_from(int64_t stage);

  // The caller's, for as long as helpers need that are in the middle of a unit.
  template <typename Ended>
  void wait(Clock::duration looks, const Ended& ended);

  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint32_t> caller_sleeps_ = 0;
  SharedWork* work_ = nullptr;
  CallHelpers call_helpers_ = nullptr;
  int64_t stages_ = 0;
  uint64_t helpers_ = 0;
  int ranges_ = 1;
  std::array<std::atomic<uint64_t>, (kMostHelpers + 64) / 64> slots_ = {};
  alignas(64) std::atomic<int64_t> stage_ = 0;
  alignas(64) std::atomic<int64_t> left_ = 0;  // units of the stage that have not ended
  Ranges units_;
};

}  // namespace lamina::cpu
