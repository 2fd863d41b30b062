// A call puts its work on a desk, calls helpers, and takes units like they do. Helpers that find units on a desk join it, take
// units until there are none, and leave. Who ends the last unit of a stage deals the next one. The caller closes the desk when
// the last stage has ended, and waits for helpers that have joined and not left: these are between two units, or after their
// last.
//
// Desks and helpers are static memory that is never given back: looking at a desk that was closed meanwhile is harmless,
// joining it is refused. Where a word is read after another was written and the other way round by another thread (who sleeps,
// and is there work), both are sequentially consistent, so that one of the two sees the other.
#include "backends/cpu/threads/helpers.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <mutex>
#include <new>

#include "backends/cpu/threads/ranges.h"

namespace lamina::cpu {

namespace {

constexpr int kMostHelpers = 1023;
constexpr int kDesks = 64;  // calls at once that helpers may join; others work alone
constexpr int kWoken = 3;   // helpers that a thread wakes; these wake further ones

using Clock = std::chrono::steady_clock;
// A helper that finds nothing to do looks out for so long before it sleeps, about as long as waking it takes: 20 to 95
// microseconds where this was measured (docs/decisions/0014).
constexpr auto kHelperLooks = std::chrono::microseconds(50);
// A caller that waits for the last units of helpers looks for so long before it sleeps, about as long as a unit takes.
constexpr auto kCallerLooks = std::chrono::microseconds(50);
// Between two glances at the clock no time passes unless another program has the core: then looking out takes from the share
// that the system gives to the thread, and it sleeps at once, for so long.
constexpr auto kTakenOff = std::chrono::microseconds(250);
constexpr auto kNoLooking = std::chrono::milliseconds(100);

void sleep_while(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

// Wakes the thread that sleeps while the word is 1, if there is one.
void wake(std::atomic<uint32_t>& word) {
  if (word.load() == 0 || word.exchange(0) == 0) return;
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, 1, nullptr, nullptr, 0);
}

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

enum class Look { seen, in_vain, taken_off };

// Until `seen` holds, or for so long.
template <typename Seen>
Look look_for(Clock::duration most, const Seen& seen) {
  const auto start = Clock::now();
  for (auto last = start;;) {
    for (int i = 0; i < 16; ++i) {
      if (seen()) return Look::seen;
      relax();
    }
    const auto now = Clock::now();
    if (now - last > kTakenOff) return seen() ? Look::seen : Look::taken_off;
    if (now - start > most) return Look::in_vain;
    last = now;
  }
}

// What a call and those who help it share.
class Desk {
 public:
  void open(SharedWork& work, int64_t first, int64_t stages, int threads) {
    work_ = &work;
    stages_ = stages;
    helpers_ = static_cast<uint64_t>(threads - 1);
    ranges_ = work.work().deal == Deal::in_turn ? 1 : std::min(threads, Ranges::kMost);
    deal_from(first);
    state_.store(kOpen | helpers_ << kHelpersAt);
  }
  // When all has ended and all helpers have left, nobody sees the work any more.
  void close() {
    state_.fetch_and(~kOpen);
    wait([this] { return state_.load() % kOpenJoined == 0; });
    state_.store(0);
  }

  bool has_units() const { return (state_.load() & kOpen) != 0 && units_.has_any(stage_.load()); }

  // Slot 0. Returns when the last stage has ended.
  void work_as_caller() {
    for (;;) {
      const int64_t stage = stage_.load();
      if (stage == stages_) return;
      if (work_at(stage, 0)) continue;
      wait([&] { return stage_.load() != stage; });
    }
  }

  // Whether there was something to do.
  bool work_as_helper(int helper) {
    if (!has_units() || !join()) return false;
    const int slot = take_slot(helper);
    bool was_useful = false, has_ended_all = false;
    for (;;) {
      const int64_t stage = stage_.load();
      if (stage == stages_ || !work_at(stage, slot)) break;
      was_useful = true;
      has_ended_all = stage_.load() == stages_;
      if (!has_ended_all) wake(caller_sleeps_);
    }
    leave(slot);
    if (has_ended_all) wake(caller_sleeps_);  // not before: the caller, woken, would take this core and wait for the leaving
    return was_useful;
  }

  int wanted() const { return static_cast<int>(helpers_); }
  void forget() {
    state_ = 0;
    caller_sleeps_ = 0;
    for (auto& slots : slots_) slots = 0;
  }

 private:
  // Of the state: helpers that have joined, helpers that may, and whether they may.
  static constexpr uint64_t kOpenJoined = uint64_t{1} << 16, kOpen = uint64_t{1} << 32;
  static constexpr int kHelpersAt = 16;

  bool join() {
    uint64_t state = state_.load();
    do {
      if ((state & kOpen) == 0 || state % kOpenJoined >= (state >> kHelpersAt) % kOpenJoined) return false;
    } while (!state_.compare_exchange_weak(state, state + 1));
    return true;
  }
  void leave(int slot) {
    slots_[static_cast<size_t>(slot) / 64].fetch_and(~(uint64_t{1} << slot % 64));
    if (const uint64_t before = state_.fetch_sub(1); (before & kOpen) == 0 && before % kOpenJoined == 1) wake(caller_sleeps_);
  }
  // The same for a helper from call to call, if it is free. There are as many as may join.
  int take_slot(int helper) {
    for (int slot = 1 + helper % wanted();; slot = slot % wanted() + 1) {
      const uint64_t bit = uint64_t{1} << slot % 64;
      if ((slots_[static_cast<size_t>(slot) / 64].fetch_or(bit) & bit) == 0) return slot;
    }
  }

  // Takes units until there are none; whether there were some.
  bool work_at(int64_t stage, int slot) {
    int64_t ended = 0;
    for (Ranges::Taken taken = units_.take(stage, slot); taken.count() > 0; taken = units_.take(stage, slot)) {
      work_->run({taken.begin, taken.end, stage, slot});
      ended += taken.count();
    }
    if (ended > 0 && left_.fetch_sub(ended) == ended) go_on(stage + 1);
    return ended > 0;
  }

  void go_on(int64_t stage);

  // The first stage from `stage` on that has units.
  void deal_from(int64_t stage);

  template <typename Ended>
  void wait(const Ended& ended) {
    if (look_for(kCallerLooks, ended) == Look::seen) return;
    while (!ended()) {
      caller_sleeps_.store(1);
      if (!ended()) sleep_while(caller_sleeps_, 1);
      caller_sleeps_.store(0);
    }
  }

  std::atomic<uint64_t> state_ = 0;
  std::atomic<uint32_t> caller_sleeps_ = 0;
  SharedWork* work_ = nullptr;
  int64_t stages_ = 0;
  uint64_t helpers_ = 0;
  int ranges_ = 1;
  std::array<std::atomic<uint64_t>, (kMostHelpers + 64) / 64> slots_ = {};
  alignas(64) std::atomic<int64_t> stage_ = 0;
  alignas(64) std::atomic<int64_t> left_ = 0;  // units of the stage that have not ended
  Ranges units_;
};

struct alignas(64) Helper {
  std::atomic<uint32_t> sleeps = 0;
  std::atomic<int> cpu = -1;  // where it went to sleep
  std::atomic<pid_t> id = 0;
  pthread_t thread = {};
};

// The system likes to wake a thread where it went to sleep; if that is where the caller is now, it would wait there for the
// caller's end, beside an idle core, until the system looks again, milliseconds later. So it is woken as if it could not go
// there.
void wake_elsewhere(Helper& helper) {
  const int here = sched_getcpu();
  cpu_set_t all;
  const pid_t id = helper.id;
  if (here < 0 || helper.cpu != here || sched_getaffinity(id, sizeof all, &all) != 0 || CPU_COUNT(&all) < 2)
    return wake(helper.sleeps);
  cpu_set_t others = all;
  CPU_CLR(static_cast<size_t>(here), &others);
  const bool is_kept_off = sched_setaffinity(id, sizeof others, &others) == 0;
  wake(helper.sleeps);
  if (is_kept_off) sched_setaffinity(id, sizeof all, &all);
}

class Helpers {
 public:
  void run(SharedWork& work, int threads) {
    threads = std::min(threads, kMostHelpers + 1);
    start(threads - 1);
    const int number = claim();
    for (int64_t first = 0; first < work.work().stages; first += Ranges::kStages / 2) {
      const int64_t end = std::min(first + Ranges::kStages / 2, work.work().stages);
      if (number < 0) {
        run_alone(work, first, end);
        continue;
      }
      Desk& desk = desks_[static_cast<size_t>(number)];
      desk.open(work, first, end, threads);
      open_.fetch_or(bit(number));
      call(threads - 1);
      desk.work_as_caller();
      open_.fetch_and(~bit(number));
      desk.close();
    }
    if (number >= 0) claimed_.fetch_and(~bit(number));
  }

  // Wakes sleeping helpers, unless as many as are wanted look out already.
  void call(int wanted) {
    const int count = count_.load();
    int woken = 0;
    wanted = std::min(wanted - looking_.load(), kWoken);
    for (int h = 0; h < count && woken < wanted; ++h) {
      if (helpers_[static_cast<size_t>(h)].sleeps.load() == 0) continue;
      wake_elsewhere(helpers_[static_cast<size_t>(h)]);
      ++woken;
    }
  }

  void stop() {
    const std::lock_guard lock(starting_);
    stops_ = true;
    for (int h = 0; h < count_; ++h) wake(helpers_[static_cast<size_t>(h)].sleeps);
    for (int h = 0; h < count_; ++h) pthread_join(helpers_[static_cast<size_t>(h)].thread, nullptr);
    count_ = 0;
  }

  // In the child of a fork, which has the forking thread alone.
  void forget() {
    for (int number = 0; number < kDesks; ++number) {
      if ((claimed_ & bit(number)) != 0) desks_[static_cast<size_t>(number)].forget();
    }
    for (int h = 0; h < count_; ++h) helpers_[static_cast<size_t>(h)].sleeps = 0;
    has_all_ = false;
    claimed_ = open_ = 0;
    count_ = looking_ = 0;
    new (&starting_) std::mutex;  // a thread of the parent may have held it
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

  // -1: all desks are taken.
  int claim() {
    uint64_t claimed = claimed_.load();
    for (;;) {
      const int number = std::countr_one(claimed);
      if (number == kDesks) return -1;
      if (claimed_.compare_exchange_weak(claimed, claimed | bit(number))) return number;
    }
  }

  // Where the system gives no more threads, there are fewer.
  void start(int wanted) {
    if (count_.load() >= wanted || stops_.load() || has_all_.load()) return;
    const std::lock_guard lock(starting_);
    if (!is_registered_) is_registered_ = pthread_atfork(nullptr, nullptr, &after_fork) == 0;
    // What the program does on signals it does on its own threads.
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (!stops_ && count_ < wanted && is_registered_ && !has_all_) {
      const int number = count_;
      void* const argument = reinterpret_cast<void*>(static_cast<intptr_t>(number));
      if (pthread_create(&helpers_[static_cast<size_t>(number)].thread, nullptr, &serve, argument) != 0) has_all_ = true;
      if (has_all_) break;
      count_ = number + 1;
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }

  static void after_fork();
  static void* serve(void* number);

  void serve(int number) {
    Helper& self = helpers_[static_cast<size_t>(number)];
    self.id = gettid();
    Clock::time_point looks_from = {};
    while (!stops_) {
      if (help(number)) continue;
      if (Clock::now() >= looks_from) {
        ++looking_;
        const Look look = look_for(kHelperLooks, [this] { return stops_ || has_units(); });
        --looking_;
        if (look == Look::taken_off) looks_from = Clock::now() + kNoLooking;
        if (look == Look::seen) continue;
      }
      self.cpu = sched_getcpu();
      self.sleeps.store(1);
      if (!stops_ && !has_units()) {
        sleep_while(self.sleeps, 1);
        self.sleeps.store(0);
        pass_on();
      }
      self.sleeps.store(0);
    }
  }

  bool help(int number) {
    bool was_useful = false;
    for_each_open([&](Desk& desk) { was_useful = desk.work_as_helper(number) || was_useful; });
    return was_useful;
  }
  bool has_units() {
    bool has = false;
    for_each_open([&](Desk& desk) { has = has || desk.has_units(); });
    return has;
  }
  // A caller wakes few.
  void pass_on() {
    if (count_.load() > kWoken && has_units()) call(kWoken);
  }
  template <typename Visit>
  void for_each_open(const Visit& visit) {
    for (uint64_t open = open_.load(); open != 0; open &= open - 1) visit(desks_[static_cast<size_t>(std::countr_zero(open))]);
  }

  std::atomic<uint64_t> claimed_ = 0, open_ = 0;       // of desks, a bit each
  std::atomic<int> count_ = 0, looking_ = 0;           // helpers; of them
  std::atomic<bool> stops_ = false, has_all_ = false;  // that there will be; that the system gives
  std::mutex starting_;
  bool is_registered_ = false;
  std::array<Helper, kMostHelpers> helpers_;
  std::array<Desk, kDesks> desks_;
};

constinit Helpers the_helpers;

struct StopsAtTheEnd {
  ~StopsAtTheEnd() { the_helpers.stop(); }
} const stops_at_the_end;

void Helpers::after_fork() { the_helpers.forget(); }

void* Helpers::serve(void* number) {
  the_helpers.serve(static_cast<int>(reinterpret_cast<intptr_t>(number)));
  return nullptr;
}

void Desk::go_on(int64_t stage) {
  deal_from(stage);
  if (stage_.load() != stages_) the_helpers.call(wanted() - static_cast<int>(state_.load() % kOpenJoined));
}

void Desk::deal_from(int64_t stage) {
  int64_t units = 0;
  for (; stage < stages_ && !work_->failed(); ++stage) {
    work_->guard([&] { units = work_->units(stage); });
    if (units > 0) break;
  }
  if (stage >= stages_ || work_->failed()) return stage_.store(stages_);
  left_.store(units);
  units_.deal(stage, units, ranges_);
  stage_.store(stage);
}

}  // namespace

void run_with_helpers(SharedWork& work, int threads) { the_helpers.run(work, threads); }

}  // namespace lamina::cpu
