// Chooses the stores of a kernel's calls by their times: past the caches, or through them. Which are faster depends on how much
// of the last-level cache and of the memory's bandwidth other programs leave. On a shared machine that changes within minutes,
// and its description does not tell. The stores do not change the bits of results.
//
// The first calls use the stores that the cost model prefers. Now and then some calls in a row try the others, and whichever
// are faster are used until the next trial. Trials take about a hundredth of the kernel's time.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>

namespace lamina::cpu {

// Any number of threads may use it. If calls overlap, only one of them is timed.
class StoreChoice {
 public:
  // Calls of a trial: first those in which the caches settle, then those that count.
  static constexpr size_t kSettling = 6, kCounted = 4;
  // The kernel's nanoseconds before its first trial, which may compile code for several milliseconds.
  static constexpr double kBeforeFirst = 20e6;
  // The least time between two trials, in times of a trial.
  static constexpr double kTrialsApart = 100;
  // The ratio of times below which the other stores are taken.
  static constexpr double kGain = 0.95;

  // `past`: the stores of the first calls are past the caches.
  explicit StoreChoice(bool past) : past_(past) {}

  // The present choice, for calls that are not timed.
  bool past() const { return past_.load(std::memory_order_relaxed); }

  // Whether the calling thread's call is the timed one; then `end` must follow. `next`: its stores.
  bool begin() { return !is_timing_.test_and_set(std::memory_order_acquire); }
  bool next() const { return past() != is_trial_; }
  void end(double nanoseconds);

 private:
  void end_trial();

  std::atomic<bool> past_;
  std::atomic_flag is_timing_ = ATOMIC_FLAG_INIT;  // protects what follows
  bool is_trial_ = false;
  size_t calls_ = 0;                        // of the trial, or since the last one
  std::array<double, kCounted> last_ = {};  // times of the choice's last calls
  double fastest_ = 0;                      // of the trial's calls that count
  double left_ = kBeforeFirst;              // nanoseconds of calls until the next trial
};

// The stores of one call: as the choice says, timed if no other call is.
class StoresOfCall {
 public:
  // `choice`: null if there is none. `otherwise`: the stores in that case.
  StoresOfCall(StoreChoice* choice, bool otherwise)
      : timed_(choice != nullptr && choice->begin() ? choice : nullptr),
        past_(timed_ != nullptr   ? timed_->next()
              : choice != nullptr ? choice->past()
                                  : otherwise) {
    if (timed_ != nullptr) start_ = Clock::now();
  }
  ~StoresOfCall() {
    if (timed_ != nullptr) timed_->end(std::chrono::duration<double, std::nano>(Clock::now() - start_).count());
  }
  StoresOfCall(const StoresOfCall&) = delete;
  StoresOfCall& operator=(const StoresOfCall&) = delete;
  bool past() const { return past_; }

 private:
  using Clock = std::chrono::steady_clock;
  StoreChoice* timed_;
  bool past_;
  Clock::time_point start_;
};

}  // namespace lamina::cpu
