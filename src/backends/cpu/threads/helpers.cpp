// Desks (desk.h) and helpers are static memory that is never given back: a helper that comes late looks at what is there.
#include "backends/cpu/threads/helpers.h"

#include <pthread.h>
#include <signal.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <mutex>
#include <new>

#include "backends/cpu/threads/desk.h"
#include "backends/cpu/threads/look_out.h"
#include "backends/cpu/threads/placement.h"
#include "handles/locks.h"

namespace lamina::cpu {

namespace {

constexpr int kDesks = 64;  // calls at once that helpers may join; others work alone
constexpr int kWoken = 3;   // helpers that a thread wakes; these wake further ones

// A helper that finds nothing to do looks out for so long before it sleeps: being woken costs the caller 5 to 20 microseconds
// and comes 25 to 400 late where this was measured (docs/decisions/0014).
constexpr auto kHelperLooks = std::chrono::milliseconds(1);
// Where another program wants its core it sleeps at once, for so long: what looking out takes from its share it would lack.
constexpr auto kNoLooking = std::chrono::milliseconds(100);

struct alignas(64) Helper {
  std::atomic<uint32_t> sleeps = 0;
  Placement placement;
  pthread_t thread = {};
};

class Helpers {
 public:
  void run(SharedWork& work, int threads) {
    threads = std::min(threads, kMostHelpers + 1);
    start(threads - 1);
    if (const int here = this_core(); callers_core_.load(std::memory_order_relaxed) != here) callers_core_ = here;
    const int number = claim();
    for (int64_t first = 0; first < work.work().stages; first += Ranges::kStages / 2) {
      const int64_t end = std::min(first + Ranges::kStages / 2, work.work().stages);
      if (number < 0) {
        run_alone(work, first, end);
        continue;
      }
      Desk& desk = desks_[static_cast<size_t>(number)];
      desk.open(work, first, end, threads, &call_helpers);
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
      Helper& helper = helpers_[static_cast<size_t>(h)];
      if (helper.sleeps.load() == 0) continue;
      helper.placement.keep_off(this_core());
      wake(helper.sleeps);
      ++woken;
    }
  }

  void stop() {
    const std::lock_guard lock(LockTable::at(LockRow::helpers, 0));
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
    for (int h = 0; h < count_; ++h) {
      helpers_[static_cast<size_t>(h)].sleeps = 0;
      helpers_[static_cast<size_t>(h)].placement.forget();
    }
    has_all_ = false;
    claimed_ = open_ = 0;
    count_ = looking_ = 0;
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
    const std::lock_guard lock(LockTable::at(LockRow::helpers, 0));
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
  static void call_helpers(int wanted);
  static void* serve(void* number);

  void serve(int number) {
    Helper& self = helpers_[static_cast<size_t>(number)];
    self.placement.begin();
    Clock::time_point looks_from = {};
    while (!stops_) {
      if (help(number)) continue;
      // Beside a caller on the same core nothing is to be seen.
      if (Clock::now() >= looks_from && this_core() != callers_core_.load(std::memory_order_relaxed)) {
        ++looking_;
        const Look look = look_giving_way(kHelperLooks, [this] { return stops_ || has_units(); });
        --looking_;
        if (look == Look::seen) continue;
        if (look == Look::taken_off) looks_from = Clock::now() + kNoLooking;
      }
      self.placement.keep_off(callers_core_.load(std::memory_order_relaxed));
      self.sleeps.store(1);
      if (!stops_ && !has_units()) {
        sleep_while(self.sleeps, 1);
        self.sleeps.store(0);
        pass_on();
      }
      self.sleeps.store(0);
      self.placement.allow_all();
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
  std::atomic<int> callers_core_ = -1;                 // of the last call
  std::atomic<bool> stops_ = false, has_all_ = false;  // that there will be; that the system gives
  bool is_registered_ = false;
  std::array<Helper, kMostHelpers> helpers_;
  std::array<Desk, kDesks> desks_;
};

constinit Helpers the_helpers;

struct StopsAtTheEnd {
  ~StopsAtTheEnd() { the_helpers.stop(); }
} const stops_at_the_end;

void Helpers::after_fork() { the_helpers.forget(); }

void Helpers::call_helpers(int wanted) { the_helpers.call(wanted); }

void* Helpers::serve(void* number) {
  the_helpers.serve(static_cast<int>(reinterpret_cast<intptr_t>(number)));
  return nullptr;
}

}  // namespace

void run_with_helpers(SharedWork& work, int threads) { the_helpers.run(work, threads); }

}  // namespace lamina::cpu
