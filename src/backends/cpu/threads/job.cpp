#include "backends/cpu/threads/job.h"

#include <algorithm>

namespace lamina::cpu {

namespace {

// The time for which a caller spins while workers run the last units, before it sleeps: about the time of one of its own
// units, within these limits.
constexpr auto kMinCallerSpin = std::chrono::microseconds(50);
constexpr auto kMaxCallerSpin = std::chrono::milliseconds(1);

}  // namespace

void Job::open(SharedWork& work, int64_t first, int64_t stages, int threads, WakeWorkers wake_workers) {
  work_ = &work;
  wake_workers_ = wake_workers;
  stages_ = stages;
  workers_ = static_cast<uint64_t>(threads - 1);
  ranges_ = work.work().scheduling == Scheduling::dynamic ? 1 : std::min(threads, Ranges::kMost);
  start_stage(first);
  state_.store(kOpen | workers_ << kWorkersShift);
}

void Job::close() {
  state_.fetch_and(~kOpen);
  wait(kMinCallerSpin, [this] { return state_.load() % kOpenJoined == 0; });
  state_.store(0);
}

void Job::run_as_caller() {
  for (;;) {
    const int64_t stage = stage_.load();
    if (stage == stages_) return;
    const auto start = Clock::now();
    const int64_t ended = work_at(stage, 0);
    if (stage_.load() != stage) continue;
    const Clock::duration a_unit = (Clock::now() - start) / std::max<int64_t>(ended, 1);
    wait(std::clamp<Clock::duration>(a_unit, kMinCallerSpin, kMaxCallerSpin), [&] { return stage_.load() != stage; });
  }
}

bool Job::run_as_worker(int worker) {
  if (!has_units() || !join()) return false;
  const int slot = take_slot(worker);
  bool was_useful = false, has_ended_all = false;
  for (;;) {
    const int64_t stage = stage_.load();
    if (stage == stages_ || work_at(stage, slot) == 0) break;
    was_useful = true;
    has_ended_all = stage_.load() == stages_;
    if (!has_ended_all) wake(caller_sleeps_);
  }
  leave(slot);
  // Not earlier: the woken caller would run on this core and wait for this thread to leave.
  if (has_ended_all) wake(caller_sleeps_);
  return was_useful;
}

void Job::forget() {
  state_ = 0;
  caller_sleeps_ = 0;
  for (auto& slots : slots_) slots = 0;
}

bool Job::join() {
  uint64_t state = state_.load();
  do {
    if ((state & kOpen) == 0 || state % kOpenJoined >= (state >> kWorkersShift) % kOpenJoined) return false;
  } while (!state_.compare_exchange_weak(state, state + 1));
  return true;
}

void Job::leave(int slot) {
  slots_[static_cast<size_t>(slot) / 64].fetch_and(~(uint64_t{1} << slot % 64));
  if (const uint64_t before = state_.fetch_sub(1); (before & kOpen) == 0 && before % kOpenJoined == 1) wake(caller_sleeps_);
}

// The same slot in each call for a worker, if it is free. There are as many slots as workers that may join.
int Job::take_slot(int worker) {
  for (int slot = 1 + worker % wanted();; slot = slot % wanted() + 1) {
    const uint64_t bit = uint64_t{1} << slot % 64;
    if ((slots_[static_cast<size_t>(slot) / 64].fetch_or(bit) & bit) == 0) return slot;
  }
}

// Runs units until there are none. Returns the number of units.
int64_t Job::work_at(int64_t stage, int slot) {
  int64_t ended = 0;
  for (Ranges::Taken taken = units_.take(stage, slot); taken.count() > 0; taken = units_.take(stage, slot)) {
    work_->run({taken.begin, taken.end, stage, slot});
    ended += taken.count();
  }
  if (ended > 0 && left_.fetch_sub(ended) == ended) go_on(stage + 1);
  return ended;
}

void Job::go_on(int64_t stage) {
  start_stage(stage);
  if (stage_.load() != stages_) wake_workers_(wanted() - static_cast<int>(state_.load() % kOpenJoined));
}

// Starts the first stage from `stage` on that has units.
void Job::start_stage(int64_t stage) {
  int64_t units = 0;
  for (; stage < stages_ && !work_->failed(); ++stage) {
    work_->guard([&] { units = work_->units(stage); });
    if (units > 0) break;
  }
  if (stage >= stages_ || work_->failed()) return stage_.store(stages_);
  left_.store(units);
  units_.assign(stage, units, ranges_);
  stage_.store(stage);
}

template <typename Ended>
void Job::wait(Clock::duration spin, const Ended& ended) {
  if (spin_wait(spin, ended) == SpinResult::satisfied) return;
  while (!ended()) {
    caller_sleeps_.store(1);
    if (!ended()) sleep_while(caller_sleeps_, 1);
    caller_sleeps_.store(0);
  }
}

}  // namespace lamina::cpu
