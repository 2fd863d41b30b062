// Work in stages on lamina's workers and on OpenMP's threads: each unit runs once, stage after stage. Only workers guarantee
// that a call does not wait for a worker that does not join it.
#include "backends/cpu/threads/executor.h"

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <omp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <latch>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>
#include <vector>

#include "interface/status.h"
#include "support/emulator.h"
#include "support/own_process.h"

namespace lamina::cpu {
namespace {

using ::testing::HasSubstr;
using Kind = Executor::Kind;

// Counts how often each unit of each stage runs.
std::vector<std::vector<int>> runs_of(const Executor& executor, const std::vector<int64_t>& units, Scheduling scheduling) {
  std::vector<std::vector<std::atomic<int>>> times;
  for (const int64_t count : units) times.emplace_back(static_cast<size_t>(count));
  executor.run(
      std::ssize(units), scheduling, [&](int64_t stage) { return units[static_cast<size_t>(stage)]; },
      [&](const Piece& piece) {
        for (int64_t unit = piece.begin; unit < piece.end; ++unit)
          ++times[static_cast<size_t>(piece.stage)][static_cast<size_t>(unit)];
      });
  std::vector<std::vector<int>> result;
  for (const auto& stage : times) result.emplace_back(stage.begin(), stage.end());
  return result;
}

std::vector<std::vector<int>> once_each(const std::vector<int64_t>& units) {
  std::vector<std::vector<int>> result;
  for (const int64_t count : units) result.emplace_back(static_cast<size_t>(count), 1);
  return result;
}

class Executors : public ::testing::TestWithParam<std::pair<Kind, int>> {
 protected:
  Executor executor() const { return {GetParam().first, GetParam().second}; }
};
INSTANTIATE_TEST_SUITE_P(Kinds, Executors,
                         ::testing::Values(std::pair(Kind::workers, 1), std::pair(Kind::workers, 2),
                                           std::pair(Kind::workers, 3), std::pair(Kind::workers, 8),
                                           std::pair(Kind::workers, 66), std::pair(Kind::openmp, 1), std::pair(Kind::openmp, 2),
                                           std::pair(Kind::openmp, 3)),
                         [](const auto& one) {
                           return (one.param.first == Kind::workers ? "Workers" : "Openmp") + std::to_string(one.param.second);
                         });

TEST_P(Executors, RunEachUnitOnce) {
  const std::vector<int64_t> units = {1, 0, 100, 7, 0, 0, 1000, 2, 0};
  for (int i = 0; i < 5; ++i) {
    for (const Scheduling scheduling : {Scheduling::static_ranges, Scheduling::dynamic})
      EXPECT_EQ(runs_of(executor(), units, scheduling), once_each(units));
  }
  for (const std::vector<int64_t>& none : {std::vector<int64_t>{}, {0}, {0, 0, 0}})
    EXPECT_EQ(runs_of(executor(), none, Scheduling::static_ranges), once_each(none));
}

TEST_P(Executors, BeginNoStageBeforeTheOneBeforeHasEnded) {
  constexpr int64_t kStages = 60, kUnits = 9;
  std::vector<std::atomic<int64_t>> ended(kStages);
  std::atomic<int> early = 0;
  executor().run(
      kStages, Scheduling::static_ranges, [](int64_t) { return kUnits; },
      [&](const Piece& piece) {
        if (piece.stage > 0 && ended[static_cast<size_t>(piece.stage) - 1] != kUnits) ++early;
        ended[static_cast<size_t>(piece.stage)] += piece.end - piece.begin;
      });
  EXPECT_EQ(early, 0);
  EXPECT_EQ(ended.back(), kUnits);
}

TEST_P(Executors, GiveEachThreadASlotOfItsOwn) {
  const Executor team = executor();
  std::vector<std::atomic<int>> in_use(static_cast<size_t>(team.threads()));
  std::atomic<int> shared = 0, outside = 0;
  for (int i = 0; i < 10; ++i) {
    team.run(
        3, Scheduling::dynamic, [](int64_t) { return 40; },
        [&](const Piece& piece) {
          if (piece.slot < 0 || piece.slot >= team.threads()) {
            ++outside;
            return;
          }
          if (++in_use[static_cast<size_t>(piece.slot)] != 1) ++shared;
          std::this_thread::yield();
          --in_use[static_cast<size_t>(piece.slot)];
        });
  }
  EXPECT_EQ(shared, 0);
  EXPECT_EQ(outside, 0);
}

TEST_P(Executors, ThrowTheFirstExceptionOnAndWorkAgain) {
  const auto run_and_throw = [&](int64_t at) {
    std::atomic<int> later = 0;
    EXPECT_THROW(executor().run(
                     3, Scheduling::static_ranges, [](int64_t) { return 20; },
                     [&](const Piece& piece) {
                       later += piece.stage == 2;
                       if (piece.stage == 1 && piece.begin <= at && at < piece.end) throw std::runtime_error("unit");
                     }),
                 std::runtime_error);
    EXPECT_EQ(later, 0) << "a stage after the one that failed";
  };
  for (const int64_t at : {0, 7, 19}) run_and_throw(at);
  EXPECT_THROW(executor().run(
                   2, Scheduling::static_ranges,
                   [](int64_t stage) -> int64_t {
                     if (stage == 1) throw std::runtime_error("units");
                     return 3;
                   },
                   [](const Piece&) {}),
               std::runtime_error);
  EXPECT_EQ(runs_of(executor(), {5, 5}, Scheduling::static_ranges), once_each({5, 5}));
}

TEST_P(Executors, RunWorkWithinAUnit) {
  std::atomic<int> inner = 0;
  executor().run(
      1, Scheduling::dynamic, [](int64_t) { return 6; },
      [&](const Piece& outer) {
        for (int64_t i = outer.begin; i < outer.end; ++i) {
          executor().run(
              2, Scheduling::static_ranges, [](int64_t) { return 10; },
              [&](const Piece& piece) { inner += static_cast<int>(piece.end - piece.begin); });
        }
      });
  EXPECT_EQ(inner, 6 * 2 * 10);
}

TEST_P(Executors, AreSharedByManyCallers) {
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < 6; ++c) {
    callers.emplace_back([&] {
      const std::vector<int64_t> units = {30, 1, 17};
      for (int i = 0; i < 20; ++i) wrong += runs_of(executor(), units, Scheduling::static_ranges) != once_each(units);
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

// ---- workers only

// Stage numbers wrap around within such a call.
TEST(WorkerPool, RunMoreStagesThanOneCallOfThemHas) {
  constexpr int64_t kStages = 70'000;
  std::atomic<int64_t> units = 0, sum = 0;
  Executor(Kind::workers, 2)
      .run(
          kStages, Scheduling::static_ranges, [](int64_t stage) { return stage % 3; },
          [&](const Piece& piece) {
            units += piece.end - piece.begin;
            sum += piece.stage * (piece.end - piece.begin);
          });
  int64_t expected = 0, expected_sum = 0;
  for (int64_t stage = 0; stage < kStages; ++stage) {
    expected += stage % 3;
    expected_sum += stage * (stage % 3);
  }
  EXPECT_EQ(units, expected);
  EXPECT_EQ(sum, expected_sum);
}

// One call blocks the only worker, in a process of its own: calls of any size by other threads do not wait for it.
TEST(WorkerPool, DISABLED_OneThatIsStuckHoldsUpNoOtherCall) {
  const Executor two(Kind::workers, 2);
  std::latch both_taken(2), may_end(1);
  std::thread stuck([&] {
    two.run(
        1, Scheduling::static_ranges, [](int64_t) { return 2; },
        [&](const Piece&) {
          both_taken.count_down();
          may_end.wait();
        });
  });
  both_taken.wait();  // by the caller and by the worker
  const std::vector<int64_t> units = {50, 1, 200, 3};
  for (int i = 0; i < 50; ++i) EXPECT_EQ(runs_of(two, units, Scheduling::static_ranges), once_each(units));
  may_end.count_down();
  stuck.join();
}
TEST(WorkerPool, OneThatIsStuckHoldsUpNoOtherCall) {
  testing::expect_passes_in_own_process("WorkerPool.DISABLED_OneThatIsStuckHoldsUpNoOtherCall", {});
}

// With more concurrent callers than job slots, callers without a slot do their work alone.
TEST(WorkerPool, CallersThatFindNoJobSlotWorkAlone) {
  constexpr int kCallers = 90;
  std::latch all_begun(kCallers);
  std::atomic<int> units = 0;
  std::vector<std::thread> callers;
  for (int c = 0; c < kCallers; ++c) {
    callers.emplace_back([&] {
      std::atomic<bool> has_begun = false;
      Executor(Kind::workers, 2)
          .run(
              1, Scheduling::static_ranges, [](int64_t) { return 4; },
              [&](const Piece& piece) {
                if (!has_begun.exchange(true)) all_begun.arrive_and_wait();
                units += static_cast<int>(piece.end - piece.begin);
              });
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(units, kCallers * 4);
}

// A forked child has none of the parent's workers and starts its own.
TEST(WorkerPool, WorkInTheChildOfAFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer lets no child of a program with threads start any";
#elif defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the address sanitizer's allocator stays locked in a child, where another thread was in it";
#endif
  if (lamina::testing::kIsEmulated) GTEST_SKIP() << lamina::testing::kNoThreadsInAChild;
  const Executor three(Kind::workers, 3);
  const std::vector<int64_t> units = {100, 3, 50};
  EXPECT_EQ(runs_of(three, units, Scheduling::static_ranges), once_each(units));
  std::atomic<bool> ends = false;
  std::thread caller([&] {
    while (!ends) runs_of(three, units, Scheduling::static_ranges);  // calls are in progress during the fork
  });
  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(20);
      bool is_right = true;
      for (int k = 0; k < 5; ++k) is_right = is_right && runs_of(three, units, Scheduling::static_ranges) == once_each(units);
      std::set<std::thread::id> threads;
      std::mutex mutex;
      three.run(
          1, Scheduling::dynamic, [](int64_t) { return 60; },
          [&](const Piece&) {
            std::this_thread::sleep_for(std::chrono::milliseconds(2));
            const std::lock_guard lock(mutex);
            threads.insert(std::this_thread::get_id());
          });
      _exit(is_right && threads.size() > 1 ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << "status " << status;
  }
  ends = true;
  caller.join();
}

size_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return static_cast<size_t>(std::distance(begin(tasks), end(tasks)));
}

// The system lists a thread slightly longer than join waits for it.
size_t threads_of_process_at_last(size_t expected) {
  for (int i = 0; i < 1000 && threads_of_process() != expected; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  return threads_of_process();
}

TEST(WorkerPool, EndWithTheirLibrary) {
  for (int i = 0; i < 10; ++i) {
    const size_t before = threads_of_process();
    void* const module = dlopen(LAMINA_WORKER_POOL_MODULE, RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(module, nullptr) << dlerror();
    const auto sum = reinterpret_cast<int (*)(int, int)>(dlsym(module, "worker_pool_module_sum"));
    ASSERT_NE(sum, nullptr);
    EXPECT_EQ(sum(100, 5), 4950);
    EXPECT_EQ(threads_of_process(), before + 4);
    ASSERT_EQ(dlclose(module), 0);
    ASSERT_EQ(dlopen(LAMINA_WORKER_POOL_MODULE, RTLD_NOW | RTLD_NOLOAD), nullptr) << "still loaded";
    EXPECT_EQ(threads_of_process_at_last(before), before);
  }
}

// ---- the number of threads, and which ones

TEST(ExecutorThreads, AreAsManyAsOpenmpWouldTake) {
  const int before = omp_get_max_threads();
  omp_set_num_threads(3);
  EXPECT_EQ(Executor().threads(), 3);
  EXPECT_EQ(Executor(5).threads(), 5);
  EXPECT_EQ(Executor(5).at_most(2).threads(), 2);
  EXPECT_EQ(Executor(5).at_most(0).threads(), 1);
  omp_set_num_threads(before);
}

// The caller's other threads already use the cores.
TEST(ExecutorThreads, AreTheCallingOneInAParallelRegion) {
  std::atomic<int> others = 0, regions = 0;
#pragma omp parallel num_threads(2)
  {
    ++regions;
    others += Executor(4).threads() - 1;
  }
  if (regions > 1) {
    EXPECT_EQ(others, 0);
  }
}

TEST(ExecutorChoice, DISABLED_OfOpenmp) {
  std::atomic<int> others = 0;
  Executor(2).run(1, Scheduling::dynamic, [](int64_t) { return 20; }, [&](const Piece&) { others += omp_in_parallel() == 0; });
  EXPECT_EQ(others, 0);
}
TEST(ExecutorChoice, DISABLED_OfWorkers) {
  std::atomic<int> openmps = 0;
  Executor(2).run(1, Scheduling::dynamic, [](int64_t) { return 20; }, [&](const Piece&) { openmps += omp_in_parallel() != 0; });
  EXPECT_EQ(openmps, 0);
}
// Runs two units; OpenMP's second thread runs one of them for the given time.
bool runs_on_openmp(std::chrono::milliseconds second_thread_takes) {
  std::atomic<int> in_region = 0;
  std::latch both_taken(2);
  Executor(2).run(
      1, Scheduling::static_ranges, [](int64_t) { return 2; },
      [&](const Piece& piece) {
        if (omp_in_parallel() == 0) return;
        ++in_region;
        both_taken.arrive_and_wait();
        if (piece.slot == 1) std::this_thread::sleep_for(second_thread_takes);
      });
  return in_region > 0;
}
TEST(ExecutorChoice, DISABLED_OfOpenmpUntilAThreadIsLate) {
  EXPECT_TRUE(runs_on_openmp(std::chrono::milliseconds(0)));
  // The time of the caller's own unit counts too: it is long on a machine with other load.
  bool is_openmp = true;
  for (int i = 0; i < 20 && is_openmp; ++i) is_openmp = runs_on_openmp(std::chrono::milliseconds(100));
  EXPECT_FALSE(is_openmp);
  const std::vector<int64_t> units = {30, 1, 17};
  EXPECT_EQ(runs_of(Executor(2), units, Scheduling::static_ranges), once_each(units));
}
TEST(ExecutorChoice, DISABLED_OfWhatThereIsNot) {
  try {
    Executor(2).run(1, Scheduling::dynamic, [](int64_t) { return 1; }, [](const Piece&) {});
    ADD_FAILURE() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::invalid_arguments);
    EXPECT_THAT(error.what(), HasSubstr("LAMINA_EXECUTOR is \"tbb\", allowed is automatic, helpers or openmp"));
  }
}
TEST(ExecutorChoice, IsTheEnvironments) {
  testing::expect_passes_in_own_process("ExecutorChoice.DISABLED_OfOpenmp", {{"LAMINA_EXECUTOR", "openmp"}});
  testing::expect_passes_in_own_process("ExecutorChoice.DISABLED_OfWorkers", {{"LAMINA_EXECUTOR", "helpers"}});
  testing::expect_passes_in_own_process("ExecutorChoice.DISABLED_OfOpenmpUntilAThreadIsLate", {{"LAMINA_EXECUTOR", ""}});
  testing::expect_passes_in_own_process("ExecutorChoice.DISABLED_OfOpenmpUntilAThreadIsLate",
                                        {{"LAMINA_EXECUTOR", "automatic"}});
  testing::expect_passes_in_own_process("ExecutorChoice.DISABLED_OfWhatThereIsNot", {{"LAMINA_EXECUTOR", "tbb"}});
}

}  // namespace
}  // namespace lamina::cpu
