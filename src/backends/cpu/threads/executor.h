// Work in tiles: threads take them from a counter, so one that is held up holds up its tile and not the others. A tile runs on
// its thread alone: whatever it calls finds one thread.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>
#include <type_traits>

namespace lamina::cpu {

// 0 means as many as OpenMP would take.
int thread_count(int threads);

// Calls `work(state, thread)` with thread = 0 .. threads - 1, each on a thread of its own, the caller's among them.
void run_team(int threads, void (*work)(void* state, int thread), void* state);

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

// Calls `tile(index, thread)` for index = 0 .. count - 1, in any order; thread < threads (at least 1). The first exception
// ends the work and is thrown on.
template <typename Tile>
void for_each_tile(int64_t count, int threads, Tile&& tile) {
  struct Work {
    std::remove_reference_t<Tile>& tile;
    const int64_t count;
    std::atomic<int64_t> next = 0;
    std::atomic<bool> failed = false;
    std::exception_ptr failure = nullptr;
  } work{tile, count};
  run_team(
      static_cast<int>(count < threads ? (count < 1 ? 1 : count) : threads),
      [](void* state, int thread) {
        auto& shared = *static_cast<Work*>(state);
        const ThreadLimit alone(1);
        try {
          for (int64_t i = shared.next++; i < shared.count && !shared.failed; i = shared.next++) shared.tile(i, thread);
        } catch (...) {
          if (!shared.failed.exchange(true)) shared.failure = std::current_exception();
        }
      },
      &work);
  if (work.failure != nullptr) std::rethrow_exception(work.failure);
}

}  // namespace lamina::cpu
