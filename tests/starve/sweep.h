// SQLite's method: repeats a call with its first allocation failing, then with its second, and so on until no allocation fails.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <string>

#include "graph/lamina.h"
#include "starve/memory_faults.h"

namespace starve {

struct Sweep {
  const char* label;
  std::function<lamina_status_t()> call;
  // Undoes a call that succeeded although an allocation failed, because it could do without that memory. Without `undo`, such a
  // call ends the sweep.
  std::function<void()> undo = nullptr;
  Owner owner = Owner::all_but_llvm;
  int64_t step = 1;  // between allocation numbers, from 101 on
  bool keeps_more_each_time = false;
};

// LAMINA_STARVE_ALL=1 tests every allocation.
inline int64_t step_of(const Sweep& sweep) { return std::getenv("LAMINA_STARVE_ALL") != nullptr ? 1 : sweep.step; }

struct Attempt {
  lamina_status_t status;
  bool has_failed;  // whether an allocation failed
  int64_t grown;    // blocks that were not released
};

inline Attempt attempt(const Sweep& sweep, int64_t number) {
  const int64_t before = live_pieces();
  fail_allocation(number, sweep.owner);
  const lamina_status_t status = sweep.call();
  const bool has_failed = stop_failing();
  if (status == lamina_success && has_failed && sweep.undo) sweep.undo();
  return {status, has_failed, live_pieces() - before};
}

// A failed allocation inside LLVM may leak LLVM's objects (docs/stability.md), so only other leaks count. LLVM allocates
// nothing once the kernel exists.
inline bool may_leak(const Attempt& made) {
  return made.grown > 0 && made.has_failed && made.status != lamina_success && !llvm_was_at_work();
}

// Whether a call that fails at this allocation leaks memory: a cache keeps an entry only once, a leak grows on each repetition.
inline bool leaks(const Sweep& sweep, int64_t number, Attempt& last) {
  constexpr int kTimes = 4;
  for (int time = 0; time < kTimes && may_leak(last); ++time) last = attempt(sweep, number);
  return may_leak(last);
}

// Returns the number of calls that failed. The result of the last, successful call remains.
inline int64_t sweep(const Sweep& given) {
#if LAMINA_FAILS_ALLOCATIONS
  set_label(given.label);
  int64_t failed = 0, leaking = 0, wrong = 0;
  for (int64_t number = 1;; number += number > 100 ? step_of(given) : 1) {
    Attempt last = attempt(given, number);
    if (last.has_failed && last.status == lamina_out_of_memory) ++failed;
    if (last.status != lamina_success && (last.status != lamina_out_of_memory || !last.has_failed) && ++wrong <= 5)
      ADD_FAILURE() << given.label << ": allocation " << number << (last.has_failed ? " fails" : " is one too many")
                    << ", status is " << last.status << ": " << lamina_last_error();
    if (!given.keeps_more_each_time && leaks(given, number, last) && ++leaking <= 5)
      ADD_FAILURE() << given.label << ": allocation " << number << " fails, and leaves " << last.grown << " pieces of memory";
    if (last.status == lamina_success && (!last.has_failed || !given.undo)) break;
    if (wrong > 100) break;
  }
  ::testing::Test::RecordProperty(given.label, std::to_string(failed));
  EXPECT_LE(wrong, 5) << given.label << ": and so on";
  EXPECT_LE(leaking, 5) << given.label << ": and so on";
  return failed;
#else
  EXPECT_EQ(given.call(), lamina_success) << given.label << ": " << lamina_last_error();
  return 0;
#endif
}

}  // namespace starve
