#include "lamina_choices.h"

#include <variant>
#include <vector>

#include "api/objects.h"
#include "backends/cpu/code/cached_costs.h"
#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/run/kernel_runner.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "compiler/compile.h"
#include "compiler/compile_cache.h"
#include "compiler/ports.h"
#include "lamina_cases.h"
#include "schedule_search.h"

namespace bench {

namespace {

using lamina::cpu::KernelRunner;
using lamina::cpu::Machine;
using lamina::cpu::Schedule;
using lamina::kernel::Kernel;

std::vector<Kernel> kernels_of(lamina::graph::graph& graph, const Machine& machine) {
  std::vector<Kernel> kernels;
  for (const lamina::graph::partition& each : graph.get_partitions()) {
    const lamina::Partition& partition = each.get()->partition;
    const lamina::compiler::PortTensors ports = lamina::compiler::known_ports(partition);
    const lamina::Subgraph subgraph = extract_subgraph(partition, ports.inputs, ports.outputs);
    const lamina::kernel::Plan plan = lamina::compiler::plan_subgraph(subgraph, *lamina::cpu_backend().plan_target());
    for (const lamina::kernel::PlanStep& step : plan.steps) {
      if (const auto* const generated = std::get_if<lamina::kernel::KernelStep>(&step))
        kernels.push_back(with_rows_arranged(generated->kernel, machine));
    }
  }
  return kernels;
}

std::vector<Schedule> default_schedules(const std::vector<Kernel>& kernels, const Machine& machine) {
  std::vector<Schedule> schedules;
  for (const Kernel& kernel : kernels) schedules.push_back(KernelRunner::by_rules(kernel, machine).schedule());
  return schedules;
}

std::vector<Schedule> tuned_schedules_of(const std::vector<Kernel>& kernels, const Machine& machine,
                                         std::vector<Schedule> schedules) {
  for (size_t i = 0; i < kernels.size(); ++i) {
    if (const auto tuned = lamina::find_tuned<Schedule>(kernels[i], machine)) schedules[i] = tuned->chosen.schedule;
  }
  return schedules;
}

std::string text_of(const std::vector<Schedule>& schedules) {
  std::string text;
  for (const Schedule& schedule : schedules) text += (text.empty() ? "" : "; ") + describe(schedule);
  return text.empty() ? "usual" : text;
}

void tune(lamina::graph::graph& graph, double milliseconds) {
  const lamina::graph::engine cpu(lamina::graph::engine::kind::cpu, 0);
  for (const lamina::graph::partition& part : graph.get_partitions())
    part.tune(part.get_input_ports(), part.get_output_ports(), cpu, milliseconds);
}

// Later compilations use the best schedules found. Returns whether all legal schedules of every kernel were timed.
bool search(const std::vector<Kernel>& kernels, const Machine& machine, double seconds, std::vector<Schedule>& schedules) {
  bool saw_all = true;
  for (size_t i = 0; i < kernels.size(); ++i) {
    const SearchResult found = search_schedules(kernels[i], machine, {.seconds = seconds}, {schedules[i]});
    schedules[i] = found.times.front().schedule;
    saw_all = saw_all && found.saw_all;
    lamina::store_tuned<Schedule>(kernels[i], machine, {found.times.front(), found.times.front(), {}});
  }
  lamina::compiler::CompileCache::instance().clear();
  return saw_all;
}

}  // namespace

Choices lamina_choices(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs,
                       const ChoiceBudget& budget) {
  lamina::tuned_texts::forget();
  lamina::compiler::CompileCache::instance().clear();
  Choices choices;
  choices.by_default = lamina_contender(which, problem, inputs, outputs);
  if (budget.tuning_milliseconds == 0 && budget.search_seconds == 0) return choices;
  lamina::graph::graph graph = lamina_graph(which, problem);
  const Machine machine = lamina::cpu::host_machine();
  const std::vector<Kernel> kernels = kernels_of(graph, machine);
  const std::vector<Schedule> usual = default_schedules(kernels, machine);
  choices.default_text = text_of(usual);
  std::vector<Schedule> best = usual;
  if (budget.tuning_milliseconds > 0) {
    tune(graph, budget.tuning_milliseconds);
    best = tuned_schedules_of(kernels, machine, usual);
    choices.tuned_text = text_of(best);
    if (best != usual) choices.tuned = lamina_contender(which, problem, inputs, outputs);
  }
  if (budget.search_seconds > 0) {
    const std::vector<Schedule> tuned = best;
    choices.searched_all = search(kernels, machine, budget.search_seconds, best);
    choices.best_text = text_of(best);
    if (best != usual && best != tuned) choices.best = lamina_contender(which, problem, inputs, outputs);
  }
  return choices;
}

}  // namespace bench
