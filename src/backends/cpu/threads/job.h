// A job: the work that a call shares with workers. The call opens the job, wakes workers, and takes units like they do. Workers
// that find a job with units join it, take units until there are none, and leave. The thread that ends the last unit of a stage
// starts the next stage. After the last stage, the caller closes the job and waits for workers that have joined and not left:
// these are between two units, or after their last one.
//
// The objects are static memory that is never freed: reading one that was closed meanwhile is harmless, and joining it fails.
// If one thread writes a first word and then reads a second one, while another thread does the reverse (a sleeping flag, and
// whether there is work), both words are sequentially consistent, so that at least one thread sees the other's write.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>

#include "backends/cpu/threads/ranges.h"
#include "backends/cpu/threads/spin_wait.h"
#include "backends/cpu/threads/work.h"

namespace lamina::cpu {

constexpr int kMaxWorkers = 1023;

// Shared by a call and the workers that join it.
class Job {
 public:
  // Wakes `wanted` more workers for a stage.
  using WakeWorkers = void (*)(int wanted);

  // Opens the job with stages `first` to stages - 1 of the work, for the caller and threads - 1 workers.
  void open(SharedWork& work, int64_t first, int64_t stages, int threads, WakeWorkers wake_workers);
  // After all units have ended and all workers have left, no thread accesses the work.
  void close();

  bool has_units() const { return (state_.load() & kOpen) != 0 && units_.has_any(stage_.load()); }

  // Uses slot 0. Returns when the last stage has ended.
  void run_as_caller();
  // Returns whether there was work. Concurrent workers must have distinct numbers.
  bool run_as_worker(int worker);

  // In the child of a fork, where no other thread exists.
  void forget();

 private:
  // Bits of the state: the number of workers that have joined, the number that may join, and whether joining is allowed.
  static constexpr uint64_t kOpenJoined = uint64_t{1} << 16, kOpen = uint64_t{1} << 32;
  static constexpr int kWorkersShift = 16;

  int wanted() const { return static_cast<int>(workers_); }
  bool join();
  void leave(int slot);
  int take_slot(int worker);

  int64_t work_at(int64_t stage, int slot);
  void go_on(int64_t stage);
  void start_stage(int64_t stage);

  // The caller waits for workers that are in the middle of a unit.
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
