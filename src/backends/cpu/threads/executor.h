// The threads of the CPU backend: lamina's own workers, OpenMP, or a caller's pool (docs/decisions/0012, 0014). All
// multi-threaded work of the CPU backend runs through this.
//
// Work has stages, and each stage has units, which threads take from counters. Units may run at the same time, one after the
// other, in any order, several on one thread: no unit waits for another. Work that depends on other units is in a later
// stage. So threads need not run concurrently, and need not start at all.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "backends/cpu/threads/work.h"

namespace lamina {
struct ThreadPool;
}

namespace lamina::cpu {

// OpenMP's number of threads. It is lower if the user chose no number and the process's control group allows fewer CPUs.
int default_threads();

// The pool's number of threads. Throws Error(invalid_arguments) if it is less than one, and Error(runtime_error) if the pool
// throws.
int thread_count(const ThreadPool& pool);

// A value that is created for each execution.
class Executor {
 public:
  // automatic: OpenMP's threads while other programs do not use the cores, else lamina's workers (oversubscription). In a
  // child of fork(), workers replace OpenMP's threads, whose runtime does not support fork.
  enum class Kind { automatic, workers, openmp, pool };

  // Uses threads of the process: automatic, or as LAMINA_EXECUTOR selects. `threads` is the limit; 0: default_threads().
  // Throws Error(invalid_arguments) for an invalid LAMINA_EXECUTOR.
  explicit Executor(int threads = 0);
  Executor(Kind kind, int threads);  // not pool
  // Uses the caller's pool, which must outlive this. Uses only the calling thread if it is one of the pool's threads and
  // already works for it. Throws Error as thread_count(pool) does.
  explicit Executor(const ThreadPool& pool);

  int threads() const { return threads_; }  // at least 1
  Executor at_most(int64_t threads) const;
  // For work on which other executions wait. If threads of a pool may be among the waiting ones, only the calling thread is
  // certain to make progress.
  Executor while_others_wait() const { return kind_ == Kind::pool ? at_most(1) : *this; }

  // Calls `work(piece)` for stages 0 to stages - 1 in order. The pieces of a stage together cover the units 0 to units(stage)
  // - 1 and run on up to threads() threads; a piece's slot is less than that. Returns after all have ended. The first
  // exception ends the work after its stage and is rethrown. Throws Error(runtime_error) if a pool does not run its items. On
  // one thread a stage is one piece.
  template <typename Units, typename Do>
  void run(int64_t stages, Scheduling scheduling, Units&& units, Do&& work) const {
    struct Both {
      std::remove_reference_t<Units>& units;
      std::remove_reference_t<Do>& work;
    } both{units, work};
    run({&both, [](void* state, int64_t stage) -> int64_t { return static_cast<Both*>(state)->units(stage); },
         [](void* state, const Piece& piece) { static_cast<Both*>(state)->work(piece); }, stages, scheduling});
  }
  void run(const Work& work) const;

 private:
  Kind kind_;
  const ThreadPool* pool_ = nullptr;
  int threads_;
};

// During its lifetime, OpenMP reports `threads` threads to libraries on this thread (0: no limit).
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Calls `tile(index, slot)` for indices 0 to count - 1 in any order. A thread prefers the same range of indices as in other
// calls, so that it finds in its caches the part of an image that it wrote in the step before. slot < executor.threads(), and
// tiles with the same slot do not run concurrently. A delayed thread delays only its tile. A tile runs on one thread, and
// libraries that it calls use one thread. The first exception ends the work and is rethrown.
template <typename Tile>
void for_each_tile(int64_t count, const Executor& executor, Tile&& tile) {
  std::atomic<bool> failed = false;
  executor.at_most(count).run(
      1, Scheduling::static_ranges, [count](int64_t) { return count; },
      [&](const Piece& piece) {
        const ThreadLimit alone(1);
        try {
          for (int64_t i = piece.begin; i < piece.end && !failed.load(std::memory_order_relaxed); ++i) tile(i, piece.slot);
        } catch (...) {
          failed = true;
          throw;
        }
      });
}

}  // namespace lamina::cpu
