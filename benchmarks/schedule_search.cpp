#include "schedule_search.h"

#include <algorithm>
#include <chrono>
#include <random>
#include <set>
#include <string>

#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/tune/kernel_timer.h"

namespace bench {

namespace {

using namespace lamina::cpu;
using TimedSchedule = lamina::TimedSchedule<Schedule>;
using Clock = std::chrono::steady_clock;

// fractions of the time: random schedules until the first, all schedules until the second
constexpr double kShareOfDrawn = 0.4, kShareOfSearch = 0.75;
constexpr double kMillisecondsOfTry = 1;
constexpr size_t kTimedAgain = 12;
constexpr int kRoundsOfFinal = 5;

bool is_faster(const TimedSchedule& a, const TimedSchedule& b) { return a.microseconds < b.microseconds; }

class Search {
 public:
  Search(const lamina::kernel::Kernel& kernel, const Machine& machine, const SearchLimits& limits)
      : kernel_(kernel),
        machine_(machine),
        limits_(limits),
        legal_(legal_schedules(kernel, machine)),
        timer_(kernel, machine),
        default_(KernelRunner::by_rules(kernel, machine)) {}

  SearchResult run(const std::vector<Schedule>& known) {
    time(default_.schedule());
    for (const Schedule& schedule : known) time(schedule);
    std::vector<Schedule> all;
    for (const Schedule& schedule : legal_) all.push_back(schedule);
    std::mt19937_64 random(limits_.seed);
    std::shuffle(all.begin(), all.end(), random);
    for (const Schedule& schedule : all) {
      if (!has_time(kShareOfDrawn)) break;
      time(schedule);
    }
    while (result_.times.size() < all.size() && climb()) continue;
    compare_best();
    result_.legal = all.size();
    result_.saw_all = result_.times.size() == all.size();
    return std::move(result_);
  }

 private:
  double spent() const { return std::chrono::duration<double>(Clock::now() - start_).count(); }
  bool has_time(double share) const { return spent() < share * limits_.seconds && result_.times.size() < limits_.most; }

  void time(const Schedule& schedule) {
    if (!tried_.insert(describe(schedule)).second) return;
    result_.times.push_back({schedule, timer_.time(KernelRunner(kernel_, machine_, schedule), kMillisecondsOfTry)});
  }

  // Times all neighbours of the best schedule so far. Returns whether one is better and there is time left.
  bool climb() {
    const TimedSchedule best = *std::min_element(result_.times.begin(), result_.times.end(), is_faster);
    for (const Schedule& schedule : legal_.neighbours(best.schedule)) {
      if (!has_time(kShareOfSearch)) return false;
      time(schedule);
    }
    return std::min_element(result_.times.begin(), result_.times.end(), is_faster)->microseconds < best.microseconds;
  }

  // The minimum of many times may be an outlier, so the best ones are compared again, in turns.
  void compare_best() {
    std::vector<TimedSchedule>& times = result_.times;
    std::sort(times.begin(), times.end(), is_faster);
    const double usual = timer_.time(default_, kMillisecondsOfTry);
    const double each = std::min(kMillisecondsOfTry, limits_.seconds);
    size_t again = 0;
    for (; again < std::min(times.size(), kTimedAgain) && spent() < limits_.seconds; ++again) {
      const KernelRunner runner(kernel_, machine_, times[again].schedule);
      const lamina::TimePair pair = timer_.time_in_turns(default_, runner, kRoundsOfFinal, each);
      times[again].microseconds = usual * pair.second / pair.first;
    }
    std::sort(times.begin(), times.begin() + static_cast<std::ptrdiff_t>(again), is_faster);
  }

  const Clock::time_point start_ = Clock::now();
  const lamina::kernel::Kernel& kernel_;
  const Machine& machine_;
  const SearchLimits limits_;
  LegalSchedules legal_;
  KernelTimer timer_;
  KernelRunner default_;
  std::set<std::string> tried_;
  SearchResult result_;
};

}  // namespace

SearchResult search_schedules(const lamina::kernel::Kernel& kernel, const Machine& machine, const SearchLimits& limits,
                              const std::vector<Schedule>& known) {
  return Search(kernel, machine, limits).run(known);
}

}  // namespace bench
