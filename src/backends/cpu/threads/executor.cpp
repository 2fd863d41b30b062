#include "backends/cpu/threads/executor.h"

#include <omp.h>
#include <pthread.h>
#include <time.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <string_view>

#include "backends/cpu/threads/cpu_quota.h"
#include "backends/cpu/threads/oversubscription_detector.h"
#include "backends/cpu/threads/ranges.h"
#include "backends/cpu/threads/worker_pool.h"
#include "backends/thread_pool.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

using Clock = OversubscriptionDetector::Clock;

constinit OversubscriptionDetector oversubscription;  // of this process

int ranges_for(const SharedWork& work, int threads) {
  return work.work().scheduling == Scheduling::dynamic ? 1 : std::min(threads, Ranges::kMost);
}

void assign_units(SharedWork& work, int64_t stage, int threads, Ranges& ranges) {
  int64_t units = 0;
  work.guard([&] { units = work.units(stage); });
  ranges.assign(stage, units, ranges_for(work, threads));
}

void take_all(SharedWork& work, int64_t stage, int slot, Ranges& ranges) {
  for (Ranges::Taken taken = ranges.take(stage, slot); taken.count() > 0; taken = ranges.take(stage, slot))
    work.run({taken.begin, taken.end, stage, slot});
}

RegionTimer::CpuTime cpu_time_of_thread() {
  timespec spent{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
  return std::chrono::seconds(spent.tv_sec) + std::chrono::nanoseconds(spent.tv_nsec);
}

// The largest CPU time that a thread of a region spent on its units of a stage. Threads write it before the stage's barrier,
// and the caller reads it after the barrier.
class LongestTime {
 public:
  void note(RegionTimer::CpuTime spent) {
    int64_t before = longest_.load(std::memory_order_relaxed);
    while (before < spent.count() && !longest_.compare_exchange_weak(before, spent.count(), std::memory_order_relaxed)) {
    }
  }
  RegionTimer::CpuTime take() { return RegionTimer::CpuTime(longest_.exchange(0, std::memory_order_relaxed)); }

 private:
  std::atomic<int64_t> longest_ = 0;
};

// The next stage is divided while other threads may still take units of this one.
void run_by_openmp(SharedWork& work, int threads) {
  std::array<Ranges, 2> ranges;
  std::array<LongestTime, 2> longest;
  const int64_t stages = work.work().stages;
  assign_units(work, 0, threads, ranges[0]);
  const Clock::time_point start = Clock::now();
  const bool is_timed = oversubscription.needs_cpu_times(start);
  const auto cpu_time = [is_timed] { return is_timed ? cpu_time_of_thread() : RegionTimer::CpuTime(0); };
  RegionTimer timer(oversubscription, start, cpu_time());
#pragma omp parallel num_threads(threads)
  for (int64_t stage = 0; stage < stages; ++stage) {
    const int slot = omp_get_thread_num();
    const RegionTimer::CpuTime begin = cpu_time();
    take_all(work, stage, slot, ranges[stage % 2]);
    const RegionTimer::CpuTime end = cpu_time();
    longest[stage % 2].note(end - begin);
    if (slot == 0 && is_timed) timer.own_units_ended(Clock::now(), end);
    if (stage + 1 == stages) break;
    if (slot == 0) assign_units(work, stage + 1, threads, ranges[(stage + 1) % 2]);
#pragma omp barrier
    if (slot == 0 && is_timed) timer.all_units_ended(longest[stage % 2].take(), Clock::now(), cpu_time());
  }
  const Clock::time_point end = Clock::now();
  if (is_timed) timer.all_units_ended(longest[(stages - 1) % 2].take(), end, cpu_time());
  oversubscription.region_ended(start, end);
}

// Calls a function of the caller's.
template <typename Call>
auto asked(const char* function, Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw Error(Status::runtime_error, join("thread pool: ", function, " threw: ", error.what()));
  } catch (...) {
    throw Error(Status::runtime_error,
                join("thread pool: ", function, " threw an exception that does not derive from std::exception"));
  }
}

struct PoolStage {
  SharedWork& work;
  int64_t stage;
  int items;
  Ranges& ranges;
  std::atomic<int> ended = 0;

  static void run_item(void* state, int index) {
    auto& self = *static_cast<PoolStage*>(state);
    self.work.guard([&] {
      if (index < 0 || index >= self.items)
        throw Error(Status::runtime_error,
                    join("thread pool: parallel_for called work with index ", index, ", allowed is 0 to ", self.items - 1));
    });
    take_all(self.work, self.stage, index, self.ranges);
    // Makes the writes of the item visible to the reader, even if the pool does not guarantee that.
    self.ended.fetch_add(1, std::memory_order_release);
  }
};

void run_by_pool(const ThreadPool& pool, SharedWork& work, int items) {
  Ranges ranges;
  for (int64_t stage = 0; stage < work.work().stages && !work.failed(); ++stage) {
    assign_units(work, stage, items, ranges);
    PoolStage state{work, stage, items, ranges};
    asked("parallel_for", [&] { pool.parallel_for(pool.user, items, &PoolStage::run_item, &state); });
    const int ended = state.ended.load(std::memory_order_acquire);
    if (work.failed() || ended == items) continue;
    throw Error(Status::runtime_error,
                join("thread pool: parallel_for returned after ", ended, " calls of work, needed are ", items));
  }
}

bool is_at_work(const ThreadPool& pool) {
  return asked("in_parallel", [&] { return pool.in_parallel(pool.user); }) != 0;
}

Executor::Kind chosen_kind() {
  const char* const chosen = std::getenv("LAMINA_EXECUTOR");
  const std::string_view name = chosen == nullptr || *chosen == '\0' ? "automatic" : chosen;
  if (name == "automatic") return Executor::Kind::automatic;
  if (name == "helpers") return Executor::Kind::workers;
  if (name == "openmp") return Executor::Kind::openmp;
  throw Error(Status::invalid_arguments, join("LAMINA_EXECUTOR is \"", name, "\", allowed is automatic, helpers or openmp"));
}

Executor::Kind kind_of_process() {
  static const Executor::Kind kind = chosen_kind();
  return kind;
}

// A child of fork() has no OpenMP threads, and if the parent used OpenMP, its runtime waits for them forever.
std::atomic<bool> was_forked = false;
const int is_told_of_forks = pthread_atfork(nullptr, nullptr, [] { was_forked = true; });

Executor::Kind kind_for_now(Executor::Kind kind) {
  using Kind = Executor::Kind;
  if (kind != Kind::automatic && kind != Kind::openmp) return kind;
#if defined(__SANITIZE_THREAD__)
  return Kind::workers;  // the sanitizer does not see the synchronisation of OpenMP's threads
#endif
  if (was_forked.load(std::memory_order_relaxed) && is_told_of_forks == 0) return Kind::workers;
  if (kind == Kind::openmp) return kind;
  return oversubscription.is_recent(Clock::now()) ? Kind::workers : Kind::openmp;
}

// The number of threads that a parallel region would get here: one, if the caller is already in as many regions as may be
// active.
int allowed_threads(int wanted) {
  if (omp_in_parallel() != 0 && omp_get_active_level() >= omp_get_max_active_levels()) return 1;
  return std::max(1, std::min(wanted > 0 ? wanted : default_threads(), omp_get_thread_limit()));
}

std::optional<int> quota_of_process() {
  std::ifstream groups("/proc/self/cgroup");
  return cpu_quota("/sys/fs/cgroup", groups);
}

}  // namespace

int default_threads() {
  static const std::optional<int> quota = quota_of_process();
  const int threads = omp_get_max_threads();
  if (!quota || threads <= *quota || std::getenv("OMP_NUM_THREADS") != nullptr) return threads;
  return threads == omp_get_num_procs() ? *quota : threads;  // the user chose another number
}

int thread_count(const ThreadPool& pool) {
  const int threads = asked("num_threads", [&] { return pool.num_threads(pool.user); });
  if (threads >= 1) return threads;
  throw Error(Status::invalid_arguments, join("thread pool: num_threads returned ", threads, ", allowed is 1 or more"));
}

Executor::Executor(int threads) : Executor(kind_of_process(), threads) {}

Executor::Executor(Kind kind, int threads) : kind_(kind), threads_(allowed_threads(threads)) {
  LAMINA_CHECK(kind != Kind::pool, "a pool comes with its functions");
}

Executor::Executor(const ThreadPool& pool)
    : kind_(Kind::pool), pool_(&pool), threads_(is_at_work(pool) ? 1 : thread_count(pool)) {}

Executor Executor::at_most(int64_t threads) const {
  Executor fewer = *this;
  fewer.threads_ = static_cast<int>(std::clamp<int64_t>(threads, 1, threads_));
  return fewer;
}

void Executor::run(const Work& work) const {
  if (work.stages == 0) return;
  if (threads_ == 1) {
    for (int64_t stage = 0; stage < work.stages; ++stage) {
      const int64_t units = work.units(work.state, stage);
      if (units > 0) work.piece(work.state, {0, units, stage, 0});
    }
    return;
  }
  SharedWork shared(work);
  switch (kind_for_now(kind_)) {
    case Kind::automatic: break;
    case Kind::workers: run_on_workers(shared, threads_); break;
    case Kind::openmp: run_by_openmp(shared, threads_); break;
    case Kind::pool: run_by_pool(*pool_, shared, threads_); break;
  }
  shared.rethrow();
}

ThreadLimit::ThreadLimit(int threads) : before_(omp_get_max_threads()) {
  if (threads > 0) omp_set_num_threads(threads);
}

ThreadLimit::~ThreadLimit() { omp_set_num_threads(before_); }

}  // namespace lamina::cpu
