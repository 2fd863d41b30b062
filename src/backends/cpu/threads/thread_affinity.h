// Which core a thread that sleeps is woken on.
//
// A system likes to wake a thread where it slept or where the one is that wakes it. If that is where the caller is, the worker
// waits there for the caller's end, beside an idle core, until the system looks again, milliseconds later. So a worker sleeps
// as a thread that may not run where its callers are, and asks for all its cores back when it is awake: whoever waits for it
// then leaves a core to which the system can move it.
#pragma once

#include <sched.h>
#include <sys/types.h>

#include <atomic>

namespace lamina::cpu {

// The core that the calling thread is on; -1: the system does not say.
inline int this_core() { return sched_getcpu(); }

// Of one thread. Where the system refuses, or the thread may run on one core only, nothing changes. What others have said
// meanwhile of where it may run is left as they said it.
class ThreadAffinity {
 public:
  // By the thread itself, before all else.
  void begin();
  // By the thread itself before it sleeps, or by who is about to wake it; both do not wait for each other.
  void exclude_core(int core);
  // By the thread itself, when it is awake.
  void restore();
  // In the child of a fork, where the thread is not.
  void forget();

 private:
  void exclude(int core);

  std::atomic<pid_t> thread_ = 0;
  std::atomic<bool> is_held_ = false;    // by who changes what follows
  std::atomic<int> excluded_core_ = -1;  // the core
  cpu_set_t all_ = {}, narrow_ = {};     // as it was, and as it was made
};

}  // namespace lamina::cpu
