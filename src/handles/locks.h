// Every lock of the library.
//
// A process may fork while its other threads hold locks. The child has none of those threads, so a lock that one of them held
// would stay locked in the child. Therefore all locks are in one fixed table. A fork acquires all of them, in table order,
// and releases them in the parent and in the child. No other mutex may exist (tests/layers/locks_test.cpp searches for one).
//
// A thread that holds a lock may acquire only locks of later rows; otherwise a fork could deadlock with it. Objects with a
// limited lifetime share the locks of their row, so that the table never changes; a thread may hold only one lock of a row.
//
// Builds without NDEBUG check this order at each lock that a thread acquires, and abort if it is violated.
//
// The guards of function-local variables, which the compiler creates, are in guards.cpp: no fork waits for them.
//
// Header-only and independent of the rest of lamina: front ends over the public interface use locks too.
#pragma once

#include <pthread.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

namespace lamina {

// The rows of the table, in the order in which one thread may acquire them.
enum class LockRow : size_t {
  front_end,  // used by compat
  front_end_inner,
  handles,  // protects the free lists of handles
  compile_cache,
  packed_constants,  // held while constants are packed
  packed_memory,     // protects the memory for them
  machine_limits,    // held while limits are measured, which compiles kernels
  code_of_kernel,    // held while a kernel variant is compiled
  tuned_schedules,
  cached_costs,
  jit,            // held while LLVM compiles; the kernel selects the lock of the row
  jit_state,      // protects the compiled kernels and the idle code generators
  llvm_targets,   // held while LLVM's targets are registered and looked up
  library_calls,  // held while oneDNN creates a primitive, which acquires oneDNN's own locks
  gpu_kernel_runner,
  gpu_programs,  // protects the table of programs
  gpu_code,      // held while a program is compiled
  gpu_memory,
  scratch_pool,
  primitive_call,
  workers,  // held while worker threads are started
  profile,
  verbose,
  count_,
};

// An address that identifies the calling thread. After a fork, the child's thread keeps that of the forking thread.
inline const void* token_of_thread() {
  static thread_local constinit char one = 0;
  return &one;
}

struct alignas(64) Lock {
  std::mutex mutex;
  std::atomic<const void*> owner = nullptr;  // token of the thread that holds it

  void lock() {
    mutex.lock();
    owner.store(token_of_thread(), std::memory_order_relaxed);
  }
  void unlock() {
    owner.store(nullptr, std::memory_order_relaxed);
    mutex.unlock();
  }
  bool is_mine() const { return owner.load(std::memory_order_relaxed) == token_of_thread(); }
};

// The rows of which the calling thread holds a lock. Empty in builds that do not check the order.
class HeldRows {
 public:
#ifdef NDEBUG
  static void take(LockRow) {}
  static void release(LockRow) {}
#else
  static void take(LockRow row) {
    if ((rows_ >> static_cast<unsigned>(row)) != 0) {
      std::fprintf(stderr,
                   "lamina: a thread takes a lock of row %u and holds locks of the rows 0x%llx: locks.h has the order\n",
                   static_cast<unsigned>(row), static_cast<unsigned long long>(rows_));
      std::abort();
    }
    rows_ |= uint64_t{1} << static_cast<unsigned>(row);
  }
  static void release(LockRow row) { rows_ &= ~(uint64_t{1} << static_cast<unsigned>(row)); }

 private:
  static inline thread_local constinit uint64_t rows_ = 0;
  static_assert(static_cast<unsigned>(LockRow::count_) <= 64);
#endif
};

class LockTable {
 public:
  static constexpr size_t kRows = static_cast<size_t>(LockRow::count_);
  // Fewer columns mean more objects per lock, hence contention. ThreadSanitizer allows a thread at most 64 locks, and a fork
  // holds all.
#ifdef __SANITIZE_THREAD__
  static constexpr size_t kColumns = 3;
#else
  static constexpr size_t kColumns = 32;
#endif

  static Lock& at(LockRow row, size_t number) { return entries_[static_cast<size_t>(row) * kColumns + number % kColumns]; }
  // Assigns the locks of a row to its objects round-robin.
  static Lock& next(LockRow row) { return at(row, turns_[static_cast<size_t>(row)].fetch_add(1, std::memory_order_relaxed)); }
  // The number of forks between the first process and this one. The child has its own number before its code runs.
  static uint32_t generation() { return generation_.load(std::memory_order_relaxed); }
  // Yields to a waiting fork. Mutexes are not fair: threads that acquire lock after lock could starve a fork.
  static void let_forks_pass() {
    if (forks_waiting_.load(std::memory_order_relaxed) > 0) std::this_thread::sleep_for(std::chrono::microseconds(200));
  }

 private:
  // A thread that forks while it holds a lock keeps holding it, in the child too.
  static void before_fork() {
    ++forks_waiting_;
    for (size_t e = 0; e < entries_.size(); ++e) {
      if (entries_[e].is_mine())
        kept_by_forker_[e] = true;
      else
        entries_[e].lock();
    }
    --forks_waiting_;
  }
  static void after_fork() {
    for (size_t e = entries_.size(); e-- > 0;) {
      if (kept_by_forker_[e])
        kept_by_forker_[e] = false;
      else
        entries_[e].unlock();
    }
  }
  // Other threads that fork at the same time wait in before_fork; the child does not have them, so its count is 0.
  static void after_fork_in_child() {
    forks_waiting_ = 0;
    ++generation_;
    after_fork();
  }
  static bool is_told_of_forks() {
    if (pthread_atfork(&before_fork, &after_fork, &after_fork_in_child) != 0) throw std::bad_alloc();
    return true;
  }

  static inline constinit std::array<Lock, kRows * kColumns> entries_{};
  static inline constinit std::array<std::atomic<unsigned>, kRows> turns_{};
  static inline constinit std::array<bool, kRows * kColumns> kept_by_forker_{};  // written by the thread that forks
  static inline constinit std::atomic<int> forks_waiting_ = 0;
  static inline constinit std::atomic<uint32_t> generation_ = 0;
  static inline const bool is_told_ = is_told_of_forks();
};

class Mutex {
 public:
  explicit Mutex(LockRow row) : entry_(LockTable::next(row)), row_(row) {}
  // Equal numbers select the same lock; so do some different ones, because there are fewer columns than numbers.
  Mutex(LockRow row, size_t number) : entry_(LockTable::at(row, number)), row_(row) {}
  Mutex(const Mutex&) = delete;
  Mutex& operator=(const Mutex&) = delete;
  void lock() {
    LockTable::let_forks_pass();
    HeldRows::take(row_);
    entry_.lock();
  }
  void unlock() {
    entry_.unlock();
    HeldRows::release(row_);
  }

 private:
  Lock& entry_;
  const LockRow row_;
};

// Calls a function once; if it throws, the next call retries.
class Once {
 public:
  explicit Once(LockRow row) : mutex_(row) {}
  template <typename Function>
  void call(Function&& function) {
    if (is_done_.load(std::memory_order_acquire)) return;
    const std::lock_guard lock(mutex_);
    if (is_done_.load(std::memory_order_relaxed)) return;
    std::forward<Function>(function)();
    is_done_.store(true, std::memory_order_release);
  }
  // The next call calls its function again. No other thread may use this meanwhile.
  void undo() { is_done_.store(false, std::memory_order_relaxed); }

 private:
  Mutex mutex_;
  std::atomic<bool> is_done_ = false;
};

// Prevents forks during its lifetime without excluding other threads: each thread uses its own lock of the row, which few
// threads share. May be nested.
class ForkGuard {
 public:
  explicit ForkGuard(LockRow row) : entry_(LockTable::at(row, number())), row_(row), is_outer_(!entry_.is_mine()) {
    if (!is_outer_) return;
    LockTable::let_forks_pass();
    HeldRows::take(row_);
    entry_.lock();
  }
  ~ForkGuard() {
    if (!is_outer_) return;
    entry_.unlock();
    HeldRows::release(row_);
  }
  ForkGuard(const ForkGuard&) = delete;
  ForkGuard& operator=(const ForkGuard&) = delete;

 private:
  static size_t number() {
    static std::atomic<size_t> threads = 0;
    static thread_local constinit size_t mine = 0;
    if (mine == 0) mine = ++threads;
    return mine;
  }
  Lock& entry_;
  const LockRow row_;
  const bool is_outer_;
};

}  // namespace lamina
