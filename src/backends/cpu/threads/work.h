// Work as those who bring threads see it: stages, each of a number of units that may be done in any order and at once.
#pragma once

#include <atomic>
#include <cstdint>
#include <exception>

namespace lamina::cpu {

// Units of a stage, one after the other on one thread; no two pieces that are done at once have the same slot.
struct Piece {
  int64_t begin, end, stage;  // units
  int slot;
};

// How units are assigned to threads, in the words of OpenMP: static_ranges gives each thread a range of its own, from which
// others take when theirs is empty; dynamic gives the next unit to the thread that asks.
enum class Scheduling { static_ranges, dynamic };

struct Work {
  void* state;
  int64_t (*units)(void* state, int64_t stage);
  void (*piece)(void* state, const Piece& piece);
  int64_t stages;
  Scheduling scheduling;
};

// Work that several threads do.
class SharedWork {
 public:
  explicit SharedWork(const Work& work) : work_(work) {}

  const Work& work() const { return work_; }
  int64_t units(int64_t stage) const { return work_.units(work_.state, stage); }
  // Exceptions stay here: they would pass through threads, and functions, that are not ours. After the first, nothing is done.
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
  // Only when all threads have ended.
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  const Work& work_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_ = nullptr;
};

}  // namespace lamina::cpu
