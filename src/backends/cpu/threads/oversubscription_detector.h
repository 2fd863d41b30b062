// Whether others want the cores: programs, or more threads of this one than there are cores. Regions of OpenMP tell, which end
// late beside others. What is chosen by it changes no bit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamina::cpu {

// Lock-free.
class OversubscriptionDetector {
 public:
  using Clock = std::chrono::steady_clock;

  void record(Clock::time_point now) { last_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  // It was there so short a time ago that it may still be. Then regions have to tell again: a late one costs one or two time
  // slices, 4 to 8 milliseconds, which in half a second are not much.
  bool is_recent(Clock::time_point now) const {
    constexpr auto kRemembered = std::chrono::milliseconds(500);
    const Clock::rep last = last_.load(std::memory_order_relaxed);
    return last != 0 && now.time_since_epoch() - Clock::duration(last) < kRemembered;
  }

 private:
  std::atomic<Clock::rep> last_ = 0;
};

// Of the thread that began a region: it does units of a stage, then waits for threads that have others. CPU times tell what is
// late: a unit that takes long takes CPU time, a thread that waits for a core takes none.
class RegionTimer {
 public:
  using Clock = OversubscriptionDetector::Clock;
  using CpuTime = std::chrono::nanoseconds;

  explicit RegionTimer(OversubscriptionDetector& detector, Clock::time_point now, CpuTime cpu)
      : detector_(detector), begin_(now), cpu_begin_(cpu) {}

  // Its own units have ended. It may have had none, where others took them while it waited for a core.
  void own_units_ended(Clock::time_point now, CpuTime cpu) {
    own_end_ = now;
    if (now - begin_ - (cpu - cpu_begin_) > kLate) detector_.record(now);
  }
  // So have all others; `longest` is the CPU time of the thread that spent most on its units. The next stage begins. A thread
  // that was on time ends so long after the caller at most, if nothing takes its core.
  void all_units_ended(CpuTime longest, Clock::time_point now, CpuTime cpu) {
    if (now - own_end_ > kLate + longest) detector_.record(now);
    begin_ = now;
    cpu_begin_ = cpu;
  }

 private:
  static constexpr auto kLate = std::chrono::microseconds(500);  // more than waking threads takes, less than a time slice
  OversubscriptionDetector& detector_;
  Clock::time_point begin_, own_end_;
  CpuTime cpu_begin_;
};

}  // namespace lamina::cpu
