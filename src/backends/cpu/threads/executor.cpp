#include "backends/cpu/threads/executor.h"

#include <omp.h>

#include <exception>

#include "backends/thread_pool.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// What the parts of a run share.
class SharedRun {
 public:
  SharedRun(Executor::Work work, void* state) : work_(work), state_(state) {}

  // Exceptions stay here: they would pass through threads, and functions, that are not ours.
  void run_part(Part part, int64_t stage) {
    if (failed_.load(std::memory_order_relaxed)) return;
    try {
      if (part.index < 0 || part.index >= part.count)
        throw Error(Status::runtime_error, join("thread pool: parallel_for called work with index ", part.index,
                                                ", allowed is 0 to ", part.count - 1));
      work_(state_, part, stage);
    } catch (...) {
      if (!failed_.exchange(true)) failure_ = std::current_exception();
    }
  }
  bool failed() const { return failed_.load(std::memory_order_relaxed); }
  void rethrow() const {
    if (failure_ != nullptr) std::rethrow_exception(failure_);
  }

 private:
  Executor::Work work_;
  void* state_;
  std::atomic<bool> failed_ = false;
  std::exception_ptr failure_ = nullptr;
};

void run_by_openmp(SharedRun& run, int threads, int64_t stages) {
#pragma omp parallel num_threads(threads)
  {
    // OpenMP may give fewer threads than were asked for.
    const Part part{omp_get_thread_num(), omp_get_num_threads()};
    for (int64_t stage = 0; stage < stages; ++stage) {
      run.run_part(part, stage);
      if (stage + 1 == stages) break;
#pragma omp barrier
    }
  }
}

// Calls a function of the caller's.
template <typename Call>
auto asked(const char* function, Call&& call) {
  try {
    return call();
  } catch (const std::exception& error) {
    throw Error(Status::runtime_error, join("thread pool: ", function, " threw: ", error.what()));
  } catch (...) {
    throw Error(Status::runtime_error, join("thread pool: ", function, " threw what is no std::exception"));
  }
}

struct PoolStage {
  SharedRun& run;
  int64_t stage;
  int parts;
  std::atomic<int> ended = 0;

  static void run_item(void* state, int index) {
    auto& self = *static_cast<PoolStage*>(state);
    self.run.run_part({index, self.parts}, self.stage);
    // What the part wrote is seen by who reads this, whatever the pool itself promises.
    self.ended.fetch_add(1, std::memory_order_release);
  }
};

void run_by_pool(const ThreadPool& pool, SharedRun& run, int parts, int64_t stages) {
  for (int64_t stage = 0; stage < stages && !run.failed(); ++stage) {
    PoolStage state{run, stage, parts};
    asked("parallel_for", [&] { pool.parallel_for(pool.user, parts, &PoolStage::run_item, &state); });
    const int ended = state.ended.load(std::memory_order_acquire);
    if (run.failed() || ended == parts) continue;
    throw Error(Status::runtime_error,
                join("thread pool: parallel_for returned when work had been called ", ended, " times, asked for were ", parts));
  }
}

bool is_at_work(const ThreadPool& pool) {
  return asked("in_parallel", [&] { return pool.in_parallel(pool.user); }) != 0;
}

}  // namespace

int thread_count(const ThreadPool& pool) {
  const int threads = asked("num_threads", [&] { return pool.num_threads(pool.user); });
  if (threads >= 1) return threads;
  throw Error(Status::invalid_arguments, join("thread pool: num_threads returned ", threads, ", allowed is 1 or more"));
}

Executor::Executor(int threads) : threads_(threads > 0 ? threads : omp_get_max_threads()) {}

Executor::Executor(const ThreadPool& pool) : pool_(&pool), threads_(is_at_work(pool) ? 1 : thread_count(pool)) {}

Executor Executor::at_most(int64_t threads) const {
  Executor fewer = *this;
  fewer.threads_ = static_cast<int>(std::clamp<int64_t>(threads, 1, threads_));
  return fewer;
}

void Executor::run(int64_t stages, Work work, void* state) const {
  if (threads_ == 1) {
    for (int64_t stage = 0; stage < stages; ++stage) work(state, {0, 1}, stage);
    return;
  }
  SharedRun shared(work, state);
  if (pool_ == nullptr)
    run_by_openmp(shared, threads_, stages);
  else
    run_by_pool(*pool_, shared, threads_, stages);
  shared.rethrow();
}

ThreadLimit::ThreadLimit(int threads) : before_(omp_get_max_threads()) {
  if (threads > 0) omp_set_num_threads(threads);
}

ThreadLimit::~ThreadLimit() { omp_set_num_threads(before_); }

}  // namespace lamina::cpu
