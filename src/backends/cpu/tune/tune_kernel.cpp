#include "backends/cpu/tune/tune_kernel.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/tune/calibrate.h"
#include "backends/cpu/tune/kernel_timer.h"

namespace lamina::cpu {

namespace {

using Clock = std::chrono::steady_clock;

constexpr double kShareOfFinal = 0.2;     // of the time, for the last comparison
constexpr double kMillisecondsOfTry = 2;  // per candidate, and as long for the best so far
constexpr double kHopeless = 1.25;        // times the best: not measured a second time
constexpr double kClearGain = 0.98;       // a schedule with at most this fraction of the best time is clearly better
constexpr int kRoundsOfTry = 3, kRoundsOfFinal = 7;

class Tuning {
 public:
  Tuning(const kernel::Kernel& kernel, const Machine& machine, double milliseconds, const TuningProgress& progress)
      : start_(Clock::now()),
        milliseconds_(milliseconds),
        progress_(progress),
        kernel_(with_rows_arranged(kernel, machine)),
        machine_(machine),
        legal_(legal_schedules(kernel_, machine_)),
        model_(kernel_, machine_),
        timer_(kernel_, machine_),
        default_(KernelRunner::by_rules(kernel_, machine_)),
        best_(&default_) {}

  TunedSchedule run() {
    times_.push_back({default_.schedule(), timer_.time(default_, kMillisecondsOfTry)});
    tried_.insert(describe(default_.schedule()));
    best_time_ = times_.front().microseconds;
    for (bool gained = true; gained && has_time();) gained = try_neighbours();
    return decide();
  }

 private:
  double spent() const { return std::chrono::duration<double, std::milli>(Clock::now() - start_).count() / milliseconds_; }
  bool has_time() const { return spent() < 1 - kShareOfFinal; }

  // Tries neighbours of the best so far, in the order of predicted time. Once one is better, its neighbours are tried next.
  // Returns whether there was one.
  bool try_neighbours() {
    std::vector<std::pair<double, Schedule>> neighbours;
    for (Schedule& schedule : legal_.neighbours(best_->schedule()))
      neighbours.emplace_back(model_.microseconds(schedule), std::move(schedule));
    std::stable_sort(neighbours.begin(), neighbours.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    for (const auto& [predicted, schedule] : neighbours) {
      if (!has_time()) return false;
      if (progress_) progress_(std::min(spent(), 1.0));
      if (tried_.insert(describe(schedule)).second && try_one(schedule)) return true;
    }
    return false;
  }

  bool try_one(const Schedule& schedule) {
    auto runner = std::make_unique<KernelRunner>(kernel_, machine_, schedule);
    double time = timer_.time(*runner, kMillisecondsOfTry / 4);
    const bool is_hopeless = time > kHopeless * best_time_;
    if (!is_hopeless) {
      const KernelTimer::Pair pair = timer_.time_in_turns(*best_, *runner, kRoundsOfTry, kMillisecondsOfTry / kRoundsOfTry);
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
  TunedSchedule decide() {
    if (progress_) progress_(std::min(spent(), 1.0));
    TunedSchedule tuned{times_.front(), times_.front(), {}};
    if (best_ != &default_) {
      const double each = std::max(milliseconds_ * kShareOfFinal / (2 * kRoundsOfFinal), 0.5);
      const KernelTimer::Pair pair = timer_.time_in_turns(default_, *best_, kRoundsOfFinal, each);
      tuned.by_default.microseconds = pair.first;
      tuned.chosen = pair.second < kClearGain * pair.first ? TimedSchedule{best_->schedule(), pair.second} : tuned.by_default;
    }
    for (const TimedSchedule& timed : times_) {
      if (timed.schedule != tuned.chosen.schedule && timed.schedule != tuned.by_default.schedule) tuned.others.push_back(timed);
    }
    std::stable_sort(tuned.others.begin(), tuned.others.end(),
                     [](const TimedSchedule& a, const TimedSchedule& b) { return a.microseconds < b.microseconds; });
    if (progress_) progress_(1);
    return tuned;
  }

  Clock::time_point start_;
  double milliseconds_;
  const TuningProgress& progress_;
  kernel::Kernel kernel_;
  Machine machine_;
  LegalSchedules legal_;
  CostModel model_;
  KernelTimer timer_;
  KernelRunner default_;
  std::unique_ptr<KernelRunner> candidate_;
  const KernelRunner* best_;  // default_ or candidate_
  double best_time_ = 0;
  std::vector<TimedSchedule> times_;  // the default first
  std::set<std::string> tried_;
};

}  // namespace

TunedSchedule tune_kernel(const kernel::Kernel& kernel, const Machine& machine, double milliseconds,
                          const TuningProgress& progress) {
  return Tuning(kernel, machine, milliseconds, progress).run();
}

Machine with_measured_costs(Machine machine) {
  const Machine host = host_machine();
  std::optional<Costs> costs = cached_costs::find(host);
  if (!costs) cached_costs::store(host, *(costs = measure_costs(host)));
  machine.costs = *costs;
  return machine;
}

size_t tune_plan(const kernel::Plan& plan, const Machine& given, const TuningRequest& request) {
  const Machine machine = host_runs(given) ? with_measured_costs(given) : given;
  std::vector<kernel::Kernel> kernels;
  for (const kernel::PlanStep& step : plan.steps) {
    const auto* const generated = std::get_if<kernel::KernelStep>(&step);
    if (generated == nullptr || generated->kernel.row_count() * generated->kernel.row_size() == 0) continue;
    kernel::Kernel kernel = with_rows_arranged(generated->kernel, machine);
    if (request.again || !tuned_schedules::find(kernel, machine)) kernels.push_back(std::move(kernel));
  }
  for (size_t i = 0; i < kernels.size(); ++i) {
    const auto progress = [&](double done) {
      if (request.progress) request.progress(i, kernels.size(), done);
    };
    tuned_schedules::store(kernels[i], machine, tune_kernel(kernels[i], machine, request.milliseconds, progress));
  }
  return kernels.size();
}

}  // namespace lamina::cpu
