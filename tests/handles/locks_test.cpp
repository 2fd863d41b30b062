// Neither the order in which threads acquire locks nor variables that are initialised on first use may block a child of a fork.
#include "handles/locks.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <stdexcept>
#include <thread>
#include <vector>

namespace lamina::testing {
namespace {

#ifndef NDEBUG

TEST(LockOrder, IsCheckedAtEachLock) {
  Mutex early(LockRow::compile_cache), late(LockRow::jit);
  {
    const std::lock_guard first(early), second(late);
  }
  const std::lock_guard alone(late);
  EXPECT_DEATH({ const std::lock_guard wrong(early); }, "takes a lock of row");
}

TEST(LockOrder, AThreadHoldsNoTwoLocksOfOneRow) {
  Mutex one(LockRow::jit), other(LockRow::jit);
  const std::lock_guard first(one);
  EXPECT_DEATH({ const std::lock_guard wrong(other); }, "takes a lock of row");
}

TEST(LockOrder, HoldsForWorkThatKeepsForksOut) {
  const ForkGuard outer(LockRow::library_calls), inner(LockRow::library_calls);
  Mutex late(LockRow::verbose), early(LockRow::jit);
  {
    const std::lock_guard right(late);
  }
  EXPECT_DEATH({ const std::lock_guard wrong(early); }, "takes a lock of row");
}

#endif

// ---- variables inside functions

std::atomic<bool> is_inside = false, may_go_on = false;
std::atomic<int> initialisations = 0;

int slow_value() {
  static const int value = [] {
    ++initialisations;
    is_inside = true;
    while (!may_go_on) std::this_thread::yield();
    return 7;
  }();
  return value;
}

TEST(FirstUse, AChildDoesNotWaitForAThreadThatItDoesNotHave) {
  is_inside = may_go_on = false;
  std::thread amid([] { slow_value(); });
  while (!is_inside) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    may_go_on = true;
    _exit(slow_value() == 7 && slow_value() == 7 && initialisations == 2 ? 0 : 1);
  }
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  may_go_on = true;
  amid.join();
  EXPECT_EQ(slow_value(), 7);
  EXPECT_EQ(initialisations, 1);
}

std::atomic<int> attempts = 0;

int value_at_second_attempt() {
  static const int value = [] {
    if (++attempts == 1) throw std::runtime_error("the first attempt");
    return 3;
  }();
  return value;
}

TEST(FirstUse, IsTriedAgainWhereItThrew) {
  EXPECT_THROW(value_at_second_attempt(), std::runtime_error);
  EXPECT_EQ(value_at_second_attempt(), 3);
  EXPECT_EQ(attempts, 2);
}

TEST(FirstUse, IsOnceForManyThreads) {
  static std::atomic<int> begun = 0;
  const auto value = [] {
    static const int once = [] {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      return ++begun;
    }();
    return once;
  };
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) threads.emplace_back([&] { wrong += value() == 1 ? 0 : 1; });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(begun, 1);
}

}  // namespace
}  // namespace lamina::testing
