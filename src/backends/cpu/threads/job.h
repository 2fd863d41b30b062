// A call opens a job, wakes workers, and takes units like they do. Workers that find units in a job join it, take
// units until there are none, and leave. Who ends the last unit of a stage starts the next one. The caller closes the job when
// the last stage has ended, and waits for workers that have joined and not left: these are between two units, or after their
// last.
//
// Jobs are static memory that is never given back: looking at a job that was closed meanwhile is harmless, joining it is
// refused. Where a word is read after another was written and the other way round by another thread (who sleeps, and is there
// work), both are sequentially consistent, so that one of the two sees the other.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "backends/cpu/threads/ranges.h"
#include "backends/cpu/threads/spin_wait.h"
#include "backends/cpu/threads/work.h"

namespace lamina::cpu {

constexpr int kMaxWorkers = 1023;

// What a call and those who help it share.
class Job {
 public:
  // For a stage that workers are wanted for, so many more.
  using WakeWorkers = void (*)(int wanted);

  // Stages first to stages - 1 of the work, for the caller and threads - 1 workers.
  void open(SharedWork& work, int64_t first, int64_t stages, int threads, WakeWorkers wake_workers);
  // When all has ended and all workers have left, nobody sees the work any more.
  void close();

  bool has_units() const { return (state_.load() & kOpen) != 0 && units_.has_any(stage_.load()); }

  // Slot 0. Returns when the last stage has ended.
  void run_as_caller();
  // Whether there was something to do. No two workers at once have the same number.
  bool run_as_worker(int worker);

  // In the child of a fork: nobody is here.
  void forget();

 private:
  // Of the state: workers that have joined, workers that may, and whether they may.
  static constexpr uint64_t kOpenJoined = uint64_t{1} << 16, kOpen = uint64_t{1} << 32;
  static constexpr int kWorkersShift = 16;

  int wanted() const { return static_cast<int>(workers_); }
  bool join();
  void leave(int slot);
  int take_slot(int worker);

  int64_t work_at(int64_t stage, int slot);
  void go_on(int64_t stage);
  void start_stage(int64_t stage);

  // The caller's, for as long as workers need that are in the middle of a unit.
  template <typename Ended>
  void wait(Clock::duration spin, const Ended& ended);

  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint32_t> caller_sleeps_ = 0;
  SharedWork* work_ = nullptr;
  WakeWorkers wake_workers_ = nullptr;
  int64_t stages_ = 0;
  uint64_t workers_ = 0;
  int ranges_ = 1;
  std::array<std::atomic<uint64_t>, (kMaxWorkers + 64) / 64> slots_ = {};
  alignas(64) std::atomic<int64_t> stage_ = 0;
  alignas(64) std::atomic<int64_t> left_ = 0;  // units of the stage that have not ended
  Ranges units_;
};

}  // namespace lamina::cpu
