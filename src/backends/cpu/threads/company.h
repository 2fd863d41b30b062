// Whether others want the cores: programs, or more threads of this one than there are cores. Regions of OpenMP tell, which end
// late beside others. What is chosen by it changes no bit.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>

namespace lamina::cpu {

// Lock-free.
class Company {
 public:
  using Clock = std::chrono::steady_clock;

  void seen(Clock::time_point now) { last_.store(now.time_since_epoch().count(), std::memory_order_relaxed); }
  // It was there so short a time ago that it may still be. Then regions have to tell again: a late one costs one or two time
  // slices, 4 to 8 milliseconds, which in half a second are not much.
  bool is_near(Clock::time_point now) const {
    constexpr auto kStays = std::chrono::milliseconds(500);
    const Clock::rep last = last_.load(std::memory_order_relaxed);
    return last != 0 && now.time_since_epoch() - Clock::duration(last) < kStays;
  }

 private:
  std::atomic<Clock::rep> last_ = 0;
};

// Of the thread that began a region: it does units of a stage, then waits for those who have others. It is given the time and
// the CPU time that it has spent: beside busy programs all threads of a region may be late, so that none is later than others,
// but then they spend less CPU time than time.
class RegionWatch {
 public:
  using Clock = Company::Clock;
  using CpuTime = std::chrono::nanoseconds;

  explicit RegionWatch(Company& company, Clock::time_point now, CpuTime cpu)
      : company_(company), begin_(now), cpu_begin_(cpu) {}

  // So many of its own units have ended.
  void own_have_ended(int64_t units, Clock::time_point now, CpuTime cpu) {
    own_end_ = now;
    units_ = units;
    own_cpu_ = cpu - cpu_begin_;
    if (units > 0 && now - begin_ - own_cpu_ > kLate) company_.seen(now);
  }
  // So have all others: the next stage begins. Threads are late where they take much longer than waking them does, and than
  // units that are larger than its own would.
  void all_have_ended(Clock::time_point now, CpuTime cpu) {
    constexpr int kUnits = 4;
    if (units_ > 0 && now - own_end_ > kLate + kUnits * (own_cpu_ / units_)) company_.seen(now);
    begin_ = now;
    cpu_begin_ = cpu;
    units_ = 0;
  }

 private:
  static constexpr auto kLate = std::chrono::microseconds(500);
  Company& company_;
  Clock::time_point begin_, own_end_;
  CpuTime cpu_begin_, own_cpu_{0};
  int64_t units_ = 0;
};

}  // namespace lamina::cpu
