// Where threads come from: lamina's own workers, OpenMP, or a caller's pool (docs/decisions/0012, 0014). All that the CPU
// backend does on several threads goes through here.
//
// Work has stages, and a stage units, which threads take from counters. Units may run at once, one after the other, in any
// order, several on one thread: no unit waits for another. What has to wait for all others is a stage of its own. So nobody
// need promise that threads run together, nor that they come at all.
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

// As many as OpenMP would take; fewer where nobody has said how many and the process's control group allows it fewer CPUs.
int default_threads();

// How many threads a pool says it has. Throws Error(invalid_arguments) for less than one, (runtime_error) where it throws.
int thread_count(const ThreadPool& pool);

// A value, made anew for each execution.
class Executor {
 public:
  // automatic: OpenMP's threads while the cores are the program's own, lamina's workers beside others
  // (oversubscription_detector.h). In a child of fork() workers stand in for OpenMP's threads, whose runtime does not survive
  // it.
  enum class Kind { automatic, workers, openmp, pool };

  // Threads of the process: automatic, or what LAMINA_EXECUTOR says. At most so many, 0: default_threads(). Throws
  // Error(invalid_arguments) for another value of LAMINA_EXECUTOR.
  explicit Executor(int threads = 0);
  Executor(Kind kind, int threads);  // not pool
  // The caller's, which outlives this; the calling thread alone where it is one of the pool's that works already. Throws Error
  // as thread_count(pool) does.
  explicit Executor(const ThreadPool& pool);

  int threads() const { return threads_; }  // at least 1
  Executor at_most(int64_t threads) const;
  // For work that other executions wait for. A pool's own threads may be among those who wait: the calling thread is all that
  // is sure to go on.
  Executor while_others_wait() const { return kind_ == Kind::pool ? at_most(1) : *this; }

  // Calls `work(piece)` for stage = 0 .. stages - 1 in this order, in each for pieces that together are the units 0 to
  // units(stage) - 1, on up to threads() threads; a piece's slot is below that. Returns when all have ended; the first
  // exception ends the work with its stage, and is thrown on. Throws Error(runtime_error) where a pool does not run what it was
  // given. On one thread a stage is one piece.
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

// While one lives, libraries that ask OpenMP on this thread are told to use `threads` threads (0: as they like).
class ThreadLimit {
 public:
  explicit ThreadLimit(int threads);
  ~ThreadLimit();
  ThreadLimit(const ThreadLimit&) = delete;
  ThreadLimit& operator=(const ThreadLimit&) = delete;

 private:
  int before_;
};

// Calls `tile(index, slot)` for index = 0 .. count - 1, in any order; slot < executor.threads(), and no two tiles of one slot
// at once. One that is held up holds up its tile and not the others. A tile runs on its thread alone: whatever it calls finds
// one thread. The first exception ends the work and is thrown on.
template <typename Tile>
void for_each_tile(int64_t count, const Executor& executor, Tile&& tile) {
  std::atomic<bool> failed = false;
  executor.at_most(count).run(
      1, Scheduling::dynamic, [count](int64_t) { return count; },
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
