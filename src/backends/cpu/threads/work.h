// Work as the sources of threads see it: stages, each with units that may run in any order and concurrently.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace lamina::cpu {

// Consecutive units of a stage, run on one thread. Concurrent pieces have different slots.
struct Piece {
  int64_t begin, end, stage;  // units
  int slot;
};

// How units are assigned to threads, in OpenMP's terms. static_ranges: each thread has a range of units, from which other
// threads take when theirs is empty. dynamic: a thread takes the next unit on request.
enum class Scheduling { static_ranges, dynamic };

struct Work {
  void* state;
  int64_t (*units)(void* state, int64_t stage);
  void (*piece)(void* state, const Piece& piece);
  int64_t stages;
  Scheduling scheduling;
};

// Work that several threads share.
class SharedWork {
 public:
  explicit SharedWork(const Work& work) : work_(work) {}

  const Work& work() const { return work_; }
  int64_t units(int64_t stage) const { return work_.units(work_.state, stage); }
  // Catches exceptions, which must not pass through threads and functions of others. After the first one, no more work is
  // done.
  void run(const Piece& piece) {
    guard([&] { work_.piece(work_.state, piece); });
  }
  template <typename Call>
  void guard(Call&& call) {
    if (failed()) return;
    try {
      call();
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  // Only after all threads have ended.
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const Work& work_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_ = nullptr;
};

}  // namespace lamina::cpu
