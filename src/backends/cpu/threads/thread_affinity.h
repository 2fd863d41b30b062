// The core on which a sleeping thread is woken.
//
// A system tends to wake a thread on its last core or on the core of the thread that wakes it. If that is the caller's core,
// the worker waits there for the caller, although another core is idle, until the scheduler rebalances milliseconds later. So a
// worker may not run on its callers' core while it sleeps, and allows all its cores when it is awake. A caller that then waits
// for it leaves a core to which the scheduler can move it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>

namespace lamina::cpu {

// The core of the calling thread; -1 if the system does not report it.
inline int this_core() { return sched_getcpu(); }

// The placement of one thread. Nothing changes if the system refuses, or if the thread may only run on one core. Changes of
// its affinity by other code are preserved.
class ThreadAffinity {
 public:
  // Called first, by the thread itself.
  void begin();
  // Called by the thread itself before it sleeps, or by the thread that is about to wake it. They do not wait for each other.
  void exclude_core(int core);
  // Called by the thread itself when it is awake.
  void restore();
  // Called in the child of a fork, where the thread does not exist.
  void forget();

 private:
  void exclude(int core);

  std::atomic<pid_t> thread_ = 0;
  std::atomic<bool> is_held_ = false;    // a lock for the members below
  std::atomic<int> excluded_core_ = -1;  // the excluded core
  cpu_set_t all_ = {}, narrow_ = {};     // the original affinity, and the restricted one
};

}  // namespace lamina::cpu
