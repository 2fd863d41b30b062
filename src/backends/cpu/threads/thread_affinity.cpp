#include "backends/cpu/threads/thread_affinity.h"

#include <unistd.h>

namespace lamina::cpu {

void ThreadAffinity::begin() { thread_ = gettid(); }

void ThreadAffinity::exclude_core(int core) {
  if (core < 0 || core >= CPU_SETSIZE || excluded_core_.load() == core || thread_.load() == 0 || is_held_.exchange(true))
    return;
  exclude(core);
  is_held_ = false;
}

void ThreadAffinity::exclude(int core) {
  cpu_set_t now;
  if (sched_getaffinity(thread_, sizeof now, &now) != 0) return;
  if (excluded_core_.load() < 0 || CPU_EQUAL(&now, &narrow_) == 0) all_ = now;
  cpu_set_t others = all_;
  CPU_CLR(static_cast<size_t>(core), &others);
  if (CPU_COUNT(&others) == 0) others = all_;
  const bool is_so = CPU_EQUAL(&now, &others) != 0 || sched_setaffinity(thread_, sizeof others, &others) == 0;
  if (!is_so) return;
  narrow_ = others;
  excluded_core_ = core;
}

void ThreadAffinity::restore() {
  if (excluded_core_.load() < 0 || is_held_.exchange(true)) return;
  cpu_set_t now;
  const bool is_ours = sched_getaffinity(thread_, sizeof now, &now) == 0 && CPU_EQUAL(&now, &narrow_) != 0;
  if (is_ours && CPU_EQUAL(&now, &all_) == 0) sched_setaffinity(thread_, sizeof all_, &all_);
  excluded_core_ = -1;
  is_held_ = false;
}

void ThreadAffinity::forget() {
  thread_ = 0;
  is_held_ = false;
  excluded_core_ = -1;
}

}  // namespace lamina::cpu
