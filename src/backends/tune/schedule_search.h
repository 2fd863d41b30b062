// Finds the fastest schedule of a kernel by measurement, on any device.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "backends/tune/tuned_schedules.h"

namespace lamina {

// The fraction of the time that is used: 0 at first, 1 at the end.
using TuningProgress = std::function<void(double done)>;

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct TimePair {
  double first, second;
};

// The medians of `rounds` times in turns, so that disturbances affect both.
template <typename First, typename Second>
TimePair time_in_turns(const First& first, const Second& second, int rounds) {
  std::vector<double> of_first, of_second;
  for (int round = 0; round < rounds; ++round) {
    of_first.push_back(first());
    of_second.push_back(second());
  }
  return {median(std::move(of_first)), median(std::move(of_second))};
}

// Times the default schedule, then schedules that differ from the best so far in one field, until the time, which includes
// compiling, is used up. A better schedule is chosen only if it is still better when both run in turns.
//
// `Subject` is a kernel on a device:
//   Schedule                                   the type of its schedules
//   Runner                                     its code under a schedule: schedule()
//   std::unique_ptr<Runner> by_default()
//   std::unique_ptr<Runner> under(schedule)
//   std::vector<Schedule> neighbours(schedule)  legal ones that differ in one field, the most promising first
//   double time(runner, milliseconds)          microseconds per call, measured for about that long
template <typename Subject>
class ScheduleSearch {
 public:
  using Schedule = typename Subject::Schedule;
  using Runner = typename Subject::Runner;

  // `subject` must outlive this.
  ScheduleSearch(Subject& subject, double milliseconds, const TuningProgress& progress)
      : start_(Clock::now()),
        subject_(subject),
        milliseconds_(milliseconds),
        progress_(progress),
        default_(subject.by_default()),
        best_(default_.get()) {}

  TunedSchedule<Schedule> run() {
    times_.push_back({default_->schedule(), subject_.time(*default_, kMillisecondsOfTry)});
    tried_.insert(schedule_text::describe(default_->schedule()));
    best_time_ = times_.front().microseconds;
    for (bool gained = true; gained && has_time();) gained = try_neighbours();
    return decide();
  }

 private:
  using Clock = std::chrono::steady_clock;

  static constexpr double kShareOfFinal = 0.2;     // of the time, for the last comparison
  static constexpr double kMillisecondsOfTry = 2;  // per candidate, and as long for the best so far
  static constexpr double kHopeless = 1.25;        // times the best: not measured a second time
  static constexpr double kClearGain = 0.98;       // a schedule with at most this fraction of the best time is clearly better
  static constexpr int kRoundsOfTry = 3, kRoundsOfFinal = 7;

  double spent() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count() / milliseconds_; }
  bool has_time() const { return spent() < 1 - kShareOfFinal; }
  void report() const {
    if (progress_) progress_(std::min(spent(), 1.0));
  }
  TimePair compare(const Runner& first, const Runner& second, int rounds, double milliseconds) {
    return time_in_turns([&] { return subject_.time(first, milliseconds); },
                         [&] { return subject_.time(second, milliseconds); }, rounds);
  }

  // Once a neighbour of the best so far is better, its neighbours are tried next. Returns whether there was one.
  bool try_neighbours() {
    for (const Schedule& schedule : subject_.neighbours(best_->schedule())) {
      if (!has_time()) return false;
      report();
      if (tried_.insert(schedule_text::describe(schedule)).second && try_one(schedule)) return true;
    }
    return false;
  }

  bool try_one(const Schedule& schedule) {
    std::unique_ptr<Runner> runner = subject_.under(schedule);
    double time = subject_.time(*runner, kMillisecondsOfTry / 4);
    const bool is_hopeless = time > kHopeless * best_time_;
    if (!is_hopeless) {
      const TimePair pair = compare(*best_, *runner, kRoundsOfTry, kMillisecondsOfTry / kRoundsOfTry);
      best_time_ = pair.first;
      time = pair.second;
    }
    times_.push_back({schedule, time});
    if (is_hopeless || time > kClearGain * best_time_) return false;
    candidate_ = std::move(runner);
    best_ = candidate_.get();
    best_time_ = time;
    return true;
  }

  // Keeps the default unless the best is clearly better when both run in turns.
  TunedSchedule<Schedule> decide() {
    report();
    TunedSchedule<Schedule> tuned{times_.front(), times_.front(), {}};
    if (best_ != default_.get()) {
      const double each = std::max(milliseconds_ * kShareOfFinal / (2 * kRoundsOfFinal), 0.5);
      const TimePair pair = compare(*default_, *best_, kRoundsOfFinal, each);
      tuned.by_default.microseconds = pair.first;
      tuned.chosen =
          pair.second < kClearGain * pair.first ? TimedSchedule<Schedule>{best_->schedule(), pair.second} : tuned.by_default;
    }
    for (const TimedSchedule<Schedule>& timed : times_) {
      if (timed.schedule != tuned.chosen.schedule && timed.schedule != tuned.by_default.schedule) tuned.others.push_back(timed);
    }
    std::stable_sort(tuned.others.begin(), tuned.others.end(),
                     [](const auto& a, const auto& b) { return a.microseconds < b.microseconds; });
    if (progress_) progress_(1);
    return tuned;
  }

  Clock::time_point start_;
  Subject& subject_;
  double milliseconds_;
  const TuningProgress& progress_;
  std::unique_ptr<Runner> default_, candidate_;
  const Runner* best_;  // default_ or candidate_
  double best_time_ = 0;
  std::vector<TimedSchedule<Schedule>> times_;  // the default first
  std::set<std::string> tried_;
};

}  // namespace lamina
