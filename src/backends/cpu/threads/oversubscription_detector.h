// Detects oversubscription: other programs use the cores, or this one has more threads than cores. OpenMP's regions show it,
// because they end late. Choices that depend on it change no bits.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamina::cpu {

// Lock-free.
class OversubscriptionDetector {
 public:
  using Clock = std::chrono::steady_clock;

  // The shortest lateness that counts: longer than waking threads, shorter than a time slice.
  static constexpr auto kLate = std::chrono::microseconds(500);

  void record(Clock::time_point now) { last_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  // Whether it was recorded recently enough that it may persist. After that time regions must show it again: a late one costs
  // one or two time slices, 4 to 8 milliseconds, which is little in half a second.
  bool is_recent(Clock::time_point now) const { return was_within(last_, now, std::chrono::milliseconds(500)); }

  // A thread's CPU time is a system call, which takes as long as a small region. Regions that are shorter than kLate are not
  // late, so CPU times are taken only after one was longer, for some time slices: then the next late one is recorded.
  void region_ended(Clock::time_point begin, Clock::time_point now) {
    if (now - begin > kLate) last_long_.store(now.time_since_epoch().count(), std::memory_order_relaxed);
  }
  bool needs_cpu_times(Clock::time_point now) const { return was_within(last_long_, now, std::chrono::milliseconds(50)); }

 private:
  static bool was_within(const std::atomic<Clock::rep>& time, Clock::time_point now, Clock::duration period) {
    const Clock::rep last = time.load(std::memory_order_relaxed);
    return last != 0 && now.time_since_epoch() - Clock::duration(last) < period;
  }

  std::atomic<Clock::rep> last_ = 0, last_long_ = 0;
};

// Times the regions of the thread that starts them. That thread runs units of a stage, then waits for the threads with other
// units. CPU times show why a thread is late: a long unit uses CPU time, waiting for a core uses none.
class RegionTimer {
 public:
  using Clock = OversubscriptionDetector::Clock;
  using CpuTime = std::chrono::nanoseconds;

  explicit RegionTimer(OversubscriptionDetector& detector, Clock::time_point now, CpuTime cpu)
      : detector_(detector), begin_(now), cpu_begin_(cpu) {}

  // The thread's own units have ended. It may have had none, if others took them while it waited for a core.
  void own_units_ended(Clock::time_point now, CpuTime cpu) {
    own_end_ = now;
    if (now - begin_ - (cpu - cpu_begin_) > kLate) detector_.record(now);
  }
  // All units have ended, and the next stage starts. `longest` is the largest CPU time that a thread spent on its units. A
  // thread that did not have to wait for a core ends at most this long after the caller.
  void all_units_ended(CpuTime longest, Clock::time_point now, CpuTime cpu) {
    if (now - own_end_ > kLate + longest) detector_.record(now);
    begin_ = now;
    cpu_begin_ = cpu;
  }

 private:
  static constexpr auto kLate = OversubscriptionDetector::kLate;
  OversubscriptionDetector& detector_;
  Clock::time_point begin_, own_end_;
  CpuTime cpu_begin_;
};

}  // namespace lamina::cpu
