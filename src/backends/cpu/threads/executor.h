// Where threads come from: OpenMP, or a caller's pool. All that the CPU backend does on several threads goes through here.
//
// Work is divided into parts, or into tiles that parts take from a counter. Parts may run at once, one after the other, in any
// order, several on one thread: no part waits for another. What has to wait for all others is a stage of its own. So a pool
// need not promise that its threads run together.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <type_traits>

namespace lamina {
struct ThreadPool;
}

namespace lamina::cpu {

// One of `count` parts that work is divided into.
struct Part {
  int64_t index, count;
  // Its share of so many units: begin to end - 1.
  int64_t begin(int64_t units) const { return units * index / count; }
  int64_t end(int64_t units) const { return units * (index + 1) / count; }
};

// How many threads a pool says it has. Throws Error(invalid_arguments) for less than one, (runtime_error) where it throws.
int thread_count(const ThreadPool& pool);

// A value, made anew for each execution.
class Executor {
 public:
  using Work = void (*)(void* state, Part part, int64_t stage);

  // OpenMP's threads: at most so many, 0: as many as it would take.
  explicit Executor(int threads = 0);
  // The caller's, which outlives this; the calling thread alone where it is one of the pool's that works already. Throws Error
  // as thread_count(pool) does.
  explicit Executor(const ThreadPool& pool);

  int threads() const { return threads_; }  // at least 1
  Executor at_most(int64_t threads) const;
  // For work that other executions wait for. A pool's own threads may be among those who wait: the calling thread is all that
  // is sure to go on.
  Executor while_others_wait() const { return pool_ == nullptr ? *this : at_most(1); }

  // Calls `work(part, stage)` for stage = 0 .. stages - 1 in this order and in each for every part, of which there are up to
  // threads(), the same in all stages. Returns when all have ended; the first exception of a part ends the work with its stage,
  // and is thrown on. Throws Error(runtime_error) where a pool does not run what it was given. On one thread: without OpenMP
  // and pool.
  template <typename Stage>
  void run(int64_t stages, Stage&& work) const {
    run(
        stages,
        [](void* state, Part part, int64_t stage) { (*static_cast<std::remove_reference_t<Stage>*>(state))(part, stage); },
        const_cast<void*>(static_cast<const void*>(&work)));
  }
  void run(int64_t stages, Work work, void* state) const;

 private:
  const ThreadPool* pool_ = nullptr;  // null: OpenMP
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

// Calls `tile(index, part)` for index = 0 .. count - 1, in any order; part < executor.threads(), and no two tiles of one part
// at once. One that is held up holds up its tile and not the others. A tile runs on its thread alone: whatever it calls finds
// one thread. The first exception ends the work and is thrown on.
template <typename Tile>
void for_each_tile(int64_t count, const Executor& executor, Tile&& tile) {
  std::atomic<int64_t> next = 0;
  std::atomic<bool> failed = false;
  executor.at_most(count).run(1, [&](Part part, int64_t) {
    const ThreadLimit alone(1);
    try {
      for (int64_t i = next++; i < count && !failed; i = next++) tile(i, static_cast<int>(part.index));
    } catch (...) {
      failed = true;
      throw;
    }
  });
}

}  // namespace lamina::cpu
