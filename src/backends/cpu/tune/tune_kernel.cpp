#include "backends/cpu/tune/tune_kernel.h"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/tune/calibrate.h"
#include "backends/cpu/tune/kernel_timer.h"
#include "backends/tune/tune_plan.h"

namespace lamina::cpu {

namespace {

// The subject of a ScheduleSearch.
class KernelOnMachine {
 public:
  using Schedule = cpu::Schedule;
  using Runner = KernelRunner;

  KernelOnMachine(const kernel::Kernel& kernel, const Machine& machine)
      : kernel_(with_rows_arranged(kernel, machine)),
        machine_(machine),
        legal_(legal_schedules(kernel_, machine_)),
        model_(kernel_, machine_),
        timer_(kernel_, machine_) {}

  std::unique_ptr<KernelRunner> by_default() const {
    return std::make_unique<KernelRunner>(KernelRunner::by_rules(kernel_, machine_));
  }
  std::unique_ptr<KernelRunner> under(const Schedule& schedule) const {
    return std::make_unique<KernelRunner>(kernel_, machine_, schedule);
  }
  // In the order of predicted time.
  std::vector<Schedule> neighbours(const Schedule& schedule) const {
    std::vector<std::pair<double, Schedule>> predicted;
    for (Schedule& other : legal_.neighbours(schedule)) predicted.emplace_back(model_.microseconds(other), std::move(other));
    std::stable_sort(predicted.begin(), predicted.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
    std::vector<Schedule> sorted;
    for (auto& [microseconds, other] : predicted) sorted.push_back(std::move(other));
    return sorted;
  }
  double time(const KernelRunner& runner, double milliseconds) { return timer_.time(runner, milliseconds); }

 private:
  kernel::Kernel kernel_;
  Machine machine_;
  LegalSchedules legal_;
  CostModel model_;
  KernelTimer timer_;
};

}  // namespace

TunedSchedule<Schedule> tune_kernel(const kernel::Kernel& kernel, const Machine& machine, double milliseconds,
                                    const TuningProgress& progress) {
  KernelOnMachine subject(kernel, machine);
  return ScheduleSearch(subject, milliseconds, progress).run();
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
  const auto arranged = [&](const kernel::Kernel& kernel) { return with_rows_arranged(kernel, machine); };
  return tune_kernels(
      plan, request, [&](const kernel::Kernel& kernel) { return find_tuned<Schedule>(arranged(kernel), machine).has_value(); },
      [&](const kernel::Kernel& kernel, const TuningProgress& progress) {
        store_tuned(arranged(kernel), machine, tune_kernel(kernel, machine, request.milliseconds, progress));
      });
}

}  // namespace lamina::cpu
