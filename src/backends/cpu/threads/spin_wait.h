// How a thread waits for others: it spins for a while, which uses a core and responds immediately, and then sleeps, which
// uses none and responds late.
#pragma once

#include <linux/futex.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "backends/cpu/host/host.h"

namespace lamina::cpu {

using Clock = std::chrono::steady_clock;

// A longer time between two reads of the clock means that another program used the core.
inline constexpr auto kPreempted = std::chrono::microseconds(250);

enum class SpinResult { satisfied, timed_out, preempted };

// Spins until `seen` returns true, for at most `most`, or until another program has used the core.
template <typename Condition>
SpinResult spin_wait(Clock::duration most, const Condition& condition) {
  const auto start = Clock::now();
  for (auto last = start;;) {
    for (int i = 0; i < 16; ++i) {
      if (condition()) return SpinResult::satisfied;
      host::relax();
    }
    const auto now = Clock::now();
    if (now - last > kPreempted) return condition() ? SpinResult::satisfied : SpinResult::preempted;
    if (now - start > most) return SpinResult::timed_out;
    last = now;
  }
}

// The same, but yields the core every few microseconds. A yield takes half a microsecond if no other thread wants the core.
// If one does, a yield reduces this thread's share of the CPU, so the first part of the wait does not yield.
template <typename Condition>
SpinResult spin_wait_yielding(Clock::duration most, const Condition& condition) {
  constexpr auto kFirst = std::chrono::microseconds(50), kBetween = std::chrono::microseconds(5);
  const auto start = Clock::now();
  for (SpinResult result = spin_wait(std::min<Clock::duration>(most, kFirst), condition);;
       result = spin_wait(kBetween, condition)) {
    const auto now = Clock::now();
    if (result != SpinResult::timed_out || now - start >= most) return result;
    sched_yield();
    if (Clock::now() - now > kPreempted) return condition() ? SpinResult::satisfied : SpinResult::preempted;
  }
}

// Also returns on spurious wake-ups.
inline void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

// Wakes the thread, if there is one, that sleeps while the word is 1.
inline void wake(std::atomic<uint32_t>& word) {
  if (word.load() == 0 || word.exchange(0) == 0) return;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

}  // namespace lamina::cpu
