// The cores on which a sleeping thread may be woken, for any affinity of this test.
#include "backends/cpu/threads/thread_affinity.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace lamina::cpu {
namespace {

std::vector<int> cores_of_this_thread() {
  cpu_set_t set;
  std::vector<int> cores;
  if (sched_getaffinity(0, sizeof set, &set) != 0) return cores;
  for (int core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(static_cast<size_t>(core), &set)) cores.push_back(core);
  }
  return cores;
}

void run_on(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(static_cast<size_t>(core), &set);
  EXPECT_EQ(sched_setaffinity(0, sizeof set, &set), 0);
}

std::vector<int> without(std::vector<int> cores, int core) {
  std::erase(cores, core);
  return cores;
}

// Runs each body on its own thread, whose affinity ends with the thread.
template <typename Body>
void on_own_thread(const Body& body) {
  std::thread([&] { body(cores_of_this_thread()); }).join();
}

TEST(ThreadAffinity, KeepsAThreadOffOneCoreAndGivesItBack) {
  on_own_thread([](const std::vector<int>& all) {
    if (all.size() < 2) GTEST_SKIP() << "one core";
    ThreadAffinity affinity;
    affinity.begin();
    for (const int core : {all[0], all[0], all[1]}) {
      affinity.exclude_core(core);
      EXPECT_EQ(cores_of_this_thread(), without(all, core));
    }
    affinity.restore();
    EXPECT_EQ(cores_of_this_thread(), all);
  });
}

TEST(ThreadAffinity, IsChangedByAnotherThread) {
  on_own_thread([](const std::vector<int>& all) {
    if (all.size() < 2) GTEST_SKIP() << "one core";
    ThreadAffinity affinity;
    affinity.begin();
    std::thread([&] { affinity.exclude_core(all[1]); }).join();
    EXPECT_EQ(cores_of_this_thread(), without(all, all[1]));
    affinity.restore();
    EXPECT_EQ(cores_of_this_thread(), all);
  });
}

TEST(ThreadAffinity, LeavesAThreadItsOnlyCore) {
  on_own_thread([](const std::vector<int>& all) {
    ASSERT_FALSE(all.empty());
    run_on({all[0]});
    ThreadAffinity affinity;
    affinity.begin();
    affinity.exclude_core(all[0]);
    EXPECT_EQ(cores_of_this_thread(), std::vector{all[0]});
    affinity.restore();
    EXPECT_EQ(cores_of_this_thread(), std::vector{all[0]});
  });
}

// `taskset` changes the affinity of a running program.
TEST(ThreadAffinity, LeavesWhatOthersHaveSaid) {
  on_own_thread([](const std::vector<int>& all) {
    if (all.size() < 2) GTEST_SKIP() << "one core";
    ThreadAffinity affinity;
    affinity.begin();
    affinity.exclude_core(all[1]);
    run_on({all[1]});
    affinity.restore();
    EXPECT_EQ(cores_of_this_thread(), std::vector{all[1]});
    affinity.exclude_core(all[0]);  // another program removed it
    EXPECT_EQ(cores_of_this_thread(), std::vector{all[1]});
    affinity.restore();
    EXPECT_EQ(cores_of_this_thread(), std::vector{all[1]});
  });
}

TEST(ThreadAffinity, OfAThreadThatIsNotThereChangesNothing) {
  on_own_thread([](const std::vector<int>& all) {
    ThreadAffinity affinity;
    affinity.exclude_core(all[0]);
    affinity.restore();
    affinity.begin();
    affinity.forget();
    affinity.exclude_core(all[0]);
    EXPECT_EQ(cores_of_this_thread(), all);
  });
}

}  // namespace
}  // namespace lamina::cpu
