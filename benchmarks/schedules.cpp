// How well schedules are chosen: for each case the default's time, what tuning finds in its budget, the best of all legal
// schedules, and the roof; and beside the measured times the order in which tuning would have tried them.
//
//   schedules [CASE:TYPE:ROWSxSIZE]...   forward, backward, add, softmax or gelu; without any, a plan of some ten
//     --budget MS      of tuning a kernel (200); 0: only the default is timed, and the other kind of stores
//     --sample N       of the legal schedules so many, drawn by a seed; 0: none (400)
//     --seed N         (1)
//     --list N         prints the N best and the default of each case
//     --smoke          one small case, to see that all runs
//
// All times are over the same memory again and again: what fits the caches is there. The roof moves the same bytes once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/kernel_timer.h"
#include "backends/cpu/schedule/lane_order.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/tune_kernel.h"
#include "compiler/compile.h"
#include "compiler/ports.h"
#include "interface/status.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina {
namespace {

using cpu::Schedule;
using testing::GraphBuilder;

struct Options {
  std::vector<std::string> cases;
  double budget = TuningRequest::kDefaultMilliseconds;
  int sample = 400, list = 0;
  uint64_t seed = 1;
};

struct Case {
  std::string text, kind;
  DataType dtype = DataType::f32;
  int64_t rows = 0, size = 0;
};

Case case_of(const std::string& text) {
  const size_t first = text.find(':'), second = text.find(':', first + 1), by = text.find('x', second + 1);
  if (first == std::string::npos || second == std::string::npos || by == std::string::npos)
    throw Error(Status::invalid_arguments, join("\"", text, "\": allowed is CASE:TYPE:ROWSxSIZE"));
  Case found{.text = text, .kind = text.substr(0, first)};
  const std::string type = text.substr(first + 1, second - first - 1);
  found.dtype = type == "bf16" ? DataType::bf16 : type == "f16" ? DataType::f16 : type == "f64" ? DataType::f64 : DataType::f32;
  found.rows = std::stoll(text.substr(second + 1, by - second - 1));
  found.size = std::stoll(text.substr(by + 1));
  return found;
}

Graph graph_of(const Case& c) {
  const DataType small = c.dtype == DataType::f64 ? DataType::f64 : DataType::f32;
  GraphBuilder g;
  const auto x = g.input(c.dtype, {c.rows, c.size});
  if (c.kind == "backward") {
    const auto dy = g.input(c.dtype, {c.rows, c.size});
    g.multi(OpKind::LayerNormBackward, {x, dy, g.input(small, {c.rows}), g.input(small, {c.rows}), g.input(small, {c.size})},
            {}, {c.dtype, small, small});
    return g.finish();
  }
  if (c.kind == "softmax") {
    g.op(OpKind::SoftMax, {x}, {{"axis", int64_t{-1}}});
    return g.finish();
  }
  const auto src = c.kind == "add" ? g.op(OpKind::Add, {x, g.input(c.dtype, {c.rows, c.size})}) : x;
  const auto normed =
      g.op(OpKind::LayerNorm, {src, g.input(small, {c.size}), g.input(small, {c.size})}, {{"keep_stats", false}});
  if (c.kind == "gelu") g.op(OpKind::GELU, {normed});
  return g.finish();
}

kernel::Kernel kernel_of(const Case& c) {
  const Graph graph = graph_of(c);
  const std::vector<Partition> partitions = partition_graph(graph, PartitionPolicy::fusion, cpu_backend());
  const compiler::PortTensors ports = compiler::known_ports(partitions.at(0));
  const Subgraph subgraph = extract_subgraph(partitions.at(0), ports.inputs, ports.outputs);
  const kernel::Plan plan = compiler::plan_subgraph(subgraph, *cpu_backend().plan_target());
  return std::get<kernel::KernelStep>(plan.steps.at(0)).kernel;
}

struct Timed {
  Schedule schedule;
  double microseconds;
};

// The legal schedules that are timed: all, where they are few enough.
std::vector<Schedule> drawn(const cpu::LegalSchedules& legal, const Options& options) {
  std::vector<Schedule> all;
  for (const Schedule& schedule : legal) all.push_back(schedule);
  std::mt19937_64 random(options.seed);
  std::shuffle(all.begin(), all.end(), random);
  if (static_cast<int>(all.size()) > options.sample) all.resize(static_cast<size_t>(options.sample));
  return all;
}

// Quickly once each, then the best dozen in turns with the default.
std::vector<Timed> times_of(const kernel::Kernel& kernel, const cpu::Machine& machine, cpu::KernelTimer& timer,
                            const std::vector<Schedule>& schedules, double usual) {
  std::vector<Timed> times;
  for (const Schedule& schedule : schedules)
    times.push_back({schedule, timer.time(cpu::KernelRunner(kernel, machine, schedule), std::min(2.0, usual / 200))});
  std::sort(times.begin(), times.end(), [](const Timed& a, const Timed& b) { return a.microseconds < b.microseconds; });
  const cpu::KernelRunner by_rules = cpu::KernelRunner::by_rules(kernel, machine);
  for (size_t i = 0; i < std::min<size_t>(times.size(), 12); ++i) {
    const auto pair = timer.time_in_turns(by_rules, cpu::KernelRunner(kernel, machine, times[i].schedule), 5, 2);
    times[i].microseconds = pair.second * usual / pair.first;
  }
  std::sort(times.begin(), times.end(), [](const Timed& a, const Timed& b) { return a.microseconds < b.microseconds; });
  return times;
}

void print(const char* what, double microseconds, double usual, const Schedule& schedule) {
  std::printf("  %-8s %10.2f us  %5.2fx  %s\n", what, microseconds, usual / microseconds, cpu::describe(schedule).c_str());
}

void run_case(const Case& c, const Options& options) {
  const cpu::Machine machine = cpu::host_machine();
  const kernel::Kernel kernel = cpu::with_rows_arranged(kernel_of(c), machine);
  const cpu::LegalSchedules legal = cpu::legal_schedules(kernel, machine);
  const cpu::KernelRunner by_rules = cpu::KernelRunner::by_rules(kernel, machine);
  cpu::KernelTimer timer(kernel, machine);
  const double usual = timer.time_in_turns(by_rules, by_rules, 5, 5).first;
  std::printf("%s\n", c.text.c_str());
  print("default", usual, usual, by_rules.schedule());
  for (const Schedule& other : legal.neighbours(by_rules.schedule())) {
    if (other.streamed == by_rules.schedule().streamed) continue;
    const auto pair = timer.time_in_turns(by_rules, cpu::KernelRunner(kernel, machine, other), 5, 5);
    print("stores", usual * pair.second / pair.first, usual, other);
  }
  if (options.budget == 0) return;
  const auto start = std::chrono::steady_clock::now();
  const cpu::TunedSchedule tuned = cpu::tune_kernel(kernel, machine, options.budget);
  const double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const double ratio = tuned.chosen.microseconds / tuned.by_default.microseconds;
  print("tuned", usual * ratio, usual, tuned.chosen.schedule);
  std::printf("           (%.0f ms, %zu others timed)\n", took, tuned.others.size());
  if (options.sample == 0) return;
  const std::vector<Timed> times = times_of(kernel, machine, timer, drawn(legal, options), usual);
  print("best", times.front().microseconds, usual, times.front().schedule);
  std::printf("           (%zu schedules timed, median %.2f us, worst %.2f us)\n", times.size(),
              times[times.size() / 2].microseconds, times.back().microseconds);
  for (size_t i = 0; i < std::min(times.size(), static_cast<size_t>(options.list)); ++i)
    print("", times[i].microseconds, usual, times[i].schedule);
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--smoke") {
      options.cases = {"forward:f32:8x40"};
      options.budget = 5;
      options.sample = 3;
    } else if (name == "--budget" && has_value) {
      options.budget = std::atof(argv[++i]);
    } else if (name == "--sample" && has_value) {
      options.sample = std::atoi(argv[++i]);
    } else if (name == "--seed" && has_value) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--list" && has_value) {
      options.list = std::atoi(argv[++i]);
    } else {
      options.cases.push_back(name);
    }
  }
  if (options.cases.empty())
    options.cases = {"forward:f32:4096x768",   "forward:f32:4096x1024",  "forward:bf16:4096x1021", "forward:f32:16384x64",
                     "backward:f32:4096x1021", "backward:f32:4096x768",  "backward:bf16:4096x768", "add:f32:4096x1024",
                     "add:bf16:4096x1021",     "softmax:bf16:4096x1024", "gelu:bf16:4096x768",     "forward:f32:32768x1024"};
  return options;
}

}  // namespace
}  // namespace lamina

int main(int argc, char** argv) {
  try {
    const lamina::Options options = lamina::options_of(argc, argv);
    for (const std::string& text : options.cases) lamina::run_case(lamina::case_of(text), options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "schedules: %s\n", error.what());
    return 2;
  }
  return 0;
}
