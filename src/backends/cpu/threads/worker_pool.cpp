// Jobs and workers are static memory that is never freed, so that a late worker still reads valid memory.
#include "backends/cpu/threads/worker_pool.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <mutex>
#include <new>

#include "backends/cpu/threads/job.h"
#include "backends/cpu/threads/spin_wait.h"
#include "backends/cpu/threads/thread_affinity.h"
#include "handles/locks.h"

namespace lamina::cpu {

namespace {

constexpr int kMaxJobs = 64;    // the most concurrent calls that workers may join; others run alone
constexpr int kWakeFanOut = 3;  // workers that a thread wakes; these wake more

// An idle worker spins for this time before it sleeps. A wake-up costs the caller 5 to 20 microseconds, and workers start 25
// to 400 microseconds later (measured in docs/decisions/0014).
constexpr auto kWorkerSpin = std::chrono::milliseconds(1);
// If another program wants its core, a worker sleeps immediately during this time: spinning would use up its share of the
// CPU.
constexpr auto kNoSpin = std::chrono::milliseconds(100);

struct alignas(64) Worker {
  std::atomic<uint32_t> sleeps = 0;
  ThreadAffinity affinity;
  pthread_t thread = {};
};

class WorkerPool {
 public:
  void run(SharedWork& work, int threads) {
    threads = std::min(threads, kMaxWorkers + 1);
    start(threads - 1);
    if (const int here = this_core(); callers_core_.load(std::memory_order_relaxed) != here) callers_core_ = here;
    const int number = claim();
    for (int64_t first = 0; first < work.work().stages; first += Ranges::kStages / 2) {
      const int64_t end = std::min(first + Ranges::kStages / 2, work.work().stages);
      if (number < 0) {
        run_alone(work, first, end);
        continue;
      }
      Job& job = jobs_[static_cast<size_t>(number)];
      job.open(work, first, end, threads, &wake_workers);
      open_.fetch_or(bit(number));
      wake_sleeping(threads - 1);
      job.run_as_caller();
      open_.fetch_and(~bit(number));
      job.close();
    }
    if (number >= 0) claimed_.fetch_and(~bit(number));
  }

  // Wakes sleeping workers, unless enough of them spin already.
  void wake_sleeping(int wanted) {
    const int count = count_.load();
    int woken = 0;
    wanted = std::min(wanted - spinning_.load(), kWakeFanOut);
    for (int h = 0; h < count && woken < wanted; ++h) {
      Worker& worker = workers_[static_cast<size_t>(h)];
      if (worker.sleeps.load() == 0) continue;
      worker.affinity.exclude_core(this_core());
      wake(worker.sleeps);
      ++woken;
    }
  }

  void stop() {
    const std::lock_guard lock(LockTable::at(LockRow::workers, 0));
    stops_ = true;
    for (int h = 0; h < count_; ++h) wake(workers_[static_cast<size_t>(h)].sleeps);
    for (int h = 0; h < count_; ++h) pthread_join(workers_[static_cast<size_t>(h)].thread, nullptr);
    count_ = 0;
  }

  // In the child of a fork, which has only the forking thread.
  void forget() {
    for (int number = 0; number < kMaxJobs; ++number) {
      if ((claimed_ & bit(number)) != 0) jobs_[static_cast<size_t>(number)].forget();
    }
    for (int h = 0; h < count_; ++h) {
      workers_[static_cast<size_t>(h)].sleeps = 0;
      workers_[static_cast<size_t>(h)].affinity.forget();
    }
    has_all_ = false;
    claimed_ = open_ = 0;
    count_ = spinning_ = 0;
  }

 private:
  static uint64_t bit(int number) { return uint64_t{1} << number; }

  static void run_alone(SharedWork& work, int64_t first, int64_t end) {
    for (int64_t stage = first; stage < end; ++stage) {
      int64_t units = 0;
      work.guard([&] { units = work.units(stage); });
      if (units > 0) work.run({0, units, stage, 0});
    }
  }

  // Returns -1 if all jobs are in use.
  int claim() {
    uint64_t claimed = claimed_.load();
    for (;;) {
      const int number = std::countr_one(claimed);
      if (number == kMaxJobs) return -1;
      if (claimed_.compare_exchange_weak(claimed, claimed | bit(number))) return number;
    }
  }

  // Starts fewer workers if the system has no more threads.
  void start(int wanted) {
    if (count_.load() >= wanted || stops_.load() || has_all_.load()) return;
    const std::lock_guard lock(LockTable::at(LockRow::workers, 0));
    if (!is_registered_) is_registered_ = pthread_atfork(nullptr, nullptr, &after_fork) == 0;
    // Signal handlers of the program run only on its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!stops_ && count_ < wanted && is_registered_ && !has_all_) {
      const int number = count_;
      void* const argument = reinterpret_cast<void*>(static_cast<intptr_t>(number));
      if (pthread_create(&workers_[static_cast<size_t>(number)].thread, nullptr, &serve, argument) != 0) has_all_ = true;
      if (has_all_) break;
      count_ = number + 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void after_fork();
  static void wake_workers(int wanted);
  static void* serve(void* number);

  void serve(int number) {
    Worker& self = workers_[static_cast<size_t>(number)];
    self.affinity.begin();
    Clock::time_point spins_from = {};
    while (!stops_) {
      if (run_open_jobs(number)) continue;
      // On the caller's core, spinning would only delay the caller.
      if (Clock::now() >= spins_from && this_core() != callers_core_.load(std::memory_order_relaxed)) {
        ++spinning_;
        const SpinResult result = spin_wait_yielding(kWorkerSpin, [this] { return stops_ || has_units(); });
        --spinning_;
        if (result == SpinResult::satisfied) continue;
        if (result == SpinResult::preempted) spins_from = Clock::now() + kNoSpin;
      }
      self.affinity.exclude_core(callers_core_.load(std::memory_order_relaxed));
      self.sleeps.store(1);
      if (!stops_ && !has_units()) {
        sleep_while(self.sleeps, 1);
        self.sleeps.store(0);
        wake_more();
      }
      self.sleeps.store(0);
      self.affinity.restore();
    }
  }

  bool run_open_jobs(int number) {
    bool was_useful = false;
    for_each_open([&](Job& job) { was_useful = job.run_as_worker(number) || was_useful; });
    return was_useful;
  }
  bool has_units() {
    bool has = false;
    for_each_open([&](Job& job) { has = has || job.has_units(); });
    return has;
  }
  // A caller wakes only a few.
  void wake_more() {
    if (count_.load() > kWakeFanOut && has_units()) wake_sleeping(kWakeFanOut);
  }
  template <typename Visit>
  void for_each_open(const Visit& visit) {
    for (uint64_t open = open_.load(); open != 0; open &= open - 1) visit(jobs_[static_cast<size_t>(std::countr_zero(open))]);
  }

  std::atomic<uint64_t> claimed_ = 0, open_ = 0;       // one bit per job
  std::atomic<int> count_ = 0, spinning_ = 0;          // the number of workers; of those that spin
  std::atomic<int> callers_core_ = -1;                 // in the last call
  std::atomic<bool> stops_ = false, has_all_ = false;  // no more workers shall start; the system has no more threads
  bool is_registered_ = false;
  std::array<Worker, kMaxWorkers> workers_;
  std::array<Job, kMaxJobs> jobs_;
};

constinit WorkerPool the_worker_pool;

struct StopsAtTheEnd {
  ~StopsAtTheEnd() { the_worker_pool.stop(); }
} const stops_at_the_end;

void WorkerPool::after_fork() { the_worker_pool.forget(); }

void WorkerPool::wake_workers(int wanted) { the_worker_pool.wake_sleeping(wanted); }

void* WorkerPool::serve(void* number) {
  the_worker_pool.serve(static_cast<int>(reinterpret_cast<intptr_t>(number)));
  return nullptr;
}

}  // namespace

void run_on_workers(SharedWork& work, int threads) { the_worker_pool.run(work, threads); }

}  // namespace lamina::cpu
