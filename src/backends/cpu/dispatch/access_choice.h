// Chooses by their times how a kernel's calls access memory: with stores past the caches or through them, with prefetches of
// the next rows or within the row. What is faster depends on how much of the last-level cache and of the memory's bandwidth
// other programs leave. On a shared machine that changes within minutes, and its description does not tell. No choice changes
// the bits of results.
//
// The first calls use the code that the cost model prefers. Now and then some calls in a row try one of the others, in turn,
// and whichever is faster is used until the next trial. Trials take about a hundredth of the kernel's time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace lamina::cpu {

// Any number of threads may use it. If calls overlap, only one of them is timed.
class AccessChoice {
 public:
  // Calls of a trial: first those in which the caches settle, then those that count.
  static constexpr size_t kSettling = 6, kCounted = 4;
  // The kernel's nanoseconds before its first trial, which may compile code for several milliseconds.
  static constexpr double kBeforeFirst = 20e6;
  // The least time between two trials, in times of a trial.
  static constexpr double kTrialsApart = 100;
  // The ratio of times below which the other code is taken.
  static constexpr double kGain = 0.95;

  // `codes`: their number, at least two. The first calls use code 0.
  explicit AccessChoice(size_t codes) : codes_(codes) {}

  // The present choice, for calls that are not timed.
  size_t present() const { return present_.load(std::memory_order_relaxed); }

  // Whether the calling thread's call is the timed one; then `end` must follow. `next`: its code.
  bool begin() { return !is_timing_.test_and_set(std::memory_order_acquire); }
  size_t next() const { return is_trial_ ? tried_ : present(); }
  void end(double nanoseconds);

 private:
  void begin_trial();
  void end_trial();

  size_t codes_;
  std::atomic<size_t> present_ = 0;
  std::atomic_flag is_timing_ = ATOMIC_FLAG_INIT;  // protects what follows
  bool is_trial_ = false;
  size_t tried_ = 0;                        // in this trial, or in the last one
  size_t calls_ = 0;                        // of the trial, or since the last one
  std::array<double, kCounted> last_ = {};  // times of the choice's last calls
  double fastest_ = 0;                      // of the trial's calls that count
  double left_ = kBeforeFirst;              // nanoseconds of calls until the next trial
};

// The code of one call: as the choice says, timed if no other call is.
class AccessOfCall {
 public:
  // `choice`: null if there is none. `otherwise`: the code in that case.
  AccessOfCall(AccessChoice* choice, size_t otherwise)
      : timed_(choice != nullptr && choice->begin() ? choice : nullptr),
        code_(timed_ != nullptr   ? timed_->next()
              : choice != nullptr ? choice->present()
                                  : otherwise) {
    if (timed_ != nullptr) start_ = Clock::now();
  }
  ~AccessOfCall() {
    if (timed_ != nullptr) timed_->end(std::chrono::duration<double, std::nano>(Clock::now() - start_).count());
  }
  AccessOfCall(const AccessOfCall&) = delete;
  AccessOfCall& operator=(const AccessOfCall&) = delete;
  size_t code() const { return code_; }

 private:
  using Clock = std::chrono::steady_clock;
  AccessChoice* timed_;
  size_t code_;
  Clock::time_point start_;
};

}  // namespace lamina::cpu
