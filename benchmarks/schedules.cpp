// Measures the quality of chosen schedules: for each case the times of the default, of the schedule that tuning finds in its
// budget and of the best legal schedule, and the roofline. Also compares the measured times with the order in which tuning
// would have tried the schedules.
//
//   schedules [CASE:TYPE:ROWSxSIZE]...   forward, backward, add, sum (add, whose sum is an output, too), chain (add, gelu),
//                                        softmax or gelu; without any, a plan of some ten
//     --budget MS      for tuning a kernel (200); 0: times only the default, and the other kind of stores
//     --sample N       number of random legal schedules, in addition to the neighbours of the default and of the best (40);
//                      0: none
//     --seed N         (1)
//     --calibrate      first measures the costs of work on this machine, unless they are cached; else costs are generic
//     --times FILE     appends all measured times to this file, one per line
//     --list N         prints the N best and the default of each case
//     --ranking FILE   only compares the model's order with that of the times in this file, in the format of --times: the
//                      effect of a change to the model, without measurements. Its first choice is the best of those listed
//     --against FILE   only times the default in turns with each schedule of this file, in the format of --times, and sums
//                      by tier: the gain of other rules
//     --smoke          one small case, as a test
//
// All times are over the same memory repeatedly, so data that fit the caches are in them. The roofline moves the same bytes
// once.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "backends/cpu/code/host_machine.h"
#include "backends/cpu/schedule/cost_model.h"
#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/tune/kernel_timer.h"
#include "backends/cpu/tune/tune_kernel.h"
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
  int sample = 40, list = 0;
  std::string times, against, ranking;
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
  const bool adds = c.kind == "add" || c.kind == "sum" || c.kind == "chain";
  const auto src = adds ? g.op(OpKind::Add, {x, g.input(c.dtype, {c.rows, c.size})}) : x;
  if (c.kind == "sum") g.output(src);
  const auto normed =
      g.op(OpKind::LayerNorm, {src, g.input(small, {c.size}), g.input(small, {c.size})}, {{"keep_stats", false}});
  if (c.kind == "gelu" || c.kind == "chain") g.op(OpKind::GELU, {normed});
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

// The quality of the model's order: its rank correlation with the measured one, and the time of its first choice over the
// best.
struct Ranking {
  double spearman, loss;
};

struct Timed {
  Schedule schedule;
  double microseconds;
};

// The legal schedules that are timed: those that differ from the default in one field, and random ones by the seed.
std::vector<Schedule> drawn(const cpu::LegalSchedules& legal, const Schedule& usual, const Options& options) {
  std::vector<Schedule> chosen = legal.neighbours(usual);
  std::mt19937_64 random(options.seed);
  for (int i = 0; i < options.sample; ++i) chosen.push_back(legal.sample(random));
  chosen.insert(chosen.begin(), usual);
  return chosen;
}

// Schedules that are timed in turns with each other.
class Contest {
 public:
  Contest(const kernel::Kernel& kernel, const cpu::Machine& machine, cpu::KernelTimer& timer)
      : kernel_(kernel), machine_(machine), timer_(timer) {}

  void add(const std::vector<Schedule>& schedules) {
    for (const Schedule& schedule : schedules) {
      if (!seen_.insert(cpu::describe(schedule)).second) continue;
      runners_.push_back(std::make_unique<cpu::KernelRunner>(kernel_, machine_, schedule));
      timed_.push_back({schedule, std::numeric_limits<double>::max()});
    }
  }

  // Times all schedules, except those that were far slower in an earlier round; the first is always timed. The minimum of the
  // times counts, so that a disturbed round affects none.
  void run(int rounds, double milliseconds) {
    for (int round = 0; round < rounds; ++round) {
      for (size_t i = 0; i < timed_.size(); ++i) {
        const double known = timed_[i].microseconds;
        if (i > 0 && known < std::numeric_limits<double>::max() && known > kHopeless * best()) continue;
        timed_[i].microseconds = std::min(known, timer_.time(*runners_[i], milliseconds));
      }
    }
  }

  const Schedule& winner() const { return std::min_element(timed_.begin(), timed_.end(), is_faster)->schedule; }
  std::vector<Timed> timed() const {  // the fastest first
    std::vector<Timed> sorted = timed_;
    std::stable_sort(sorted.begin(), sorted.end(), is_faster);
    return sorted;
  }

 private:
  static constexpr double kHopeless = 1.6;  // as a multiple of the best time
  static bool is_faster(const Timed& a, const Timed& b) { return a.microseconds < b.microseconds; }
  double best() const { return std::min_element(timed_.begin(), timed_.end(), is_faster)->microseconds; }
  const kernel::Kernel& kernel_;
  const cpu::Machine& machine_;
  cpu::KernelTimer& timer_;
  std::vector<std::unique_ptr<cpu::KernelRunner>> runners_;
  std::vector<Timed> timed_;
  std::set<std::string> seen_;
};

// Ranks of the values. Equal values get their mean rank.
std::vector<double> places(const std::vector<double>& values) {
  std::vector<double> found;
  for (const double value : values) {
    const auto less = std::count_if(values.begin(), values.end(), [&](double other) { return other < value; });
    const auto same = std::count(values.begin(), values.end(), value);
    found.push_back(static_cast<double>(less) + static_cast<double>(same - 1) / 2);
  }
  return found;
}

double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> of_a = places(a), of_b = places(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double both = 0, first = 0, second = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    both += (of_a[i] - middle) * (of_b[i] - middle);
    first += (of_a[i] - middle) * (of_a[i] - middle);
    second += (of_b[i] - middle) * (of_b[i] - middle);
  }
  return first * second > 0 ? both / std::sqrt(first * second) : 1;
}

// `usual`: the time of the default.
void print(const char* what, double microseconds, double usual, const Schedule& schedule, const cpu::CostModel& model) {
  std::printf("  %-8s %10.2f us  %5.2fx  predicted %10.2f us  %s\n", what, microseconds, usual / microseconds,
              model.microseconds(schedule), cpu::describe(schedule).c_str());
}

void tune(const kernel::Kernel& kernel, const cpu::Machine& machine, const Options& options, double usual) {
  const auto start = std::chrono::steady_clock::now();
  const TunedSchedule<Schedule> tuned = cpu::tune_kernel(kernel, machine, options.budget);
  const double took = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - start).count();
  const double ratio = tuned.chosen.microseconds / tuned.by_default.microseconds;
  print("tuned", usual * ratio, usual, tuned.chosen.schedule, cpu::CostModel(kernel, machine));
  std::printf("           (%.0f ms, %zu others timed)\n", took, tuned.others.size());
}

// One line per schedule: the case, the time, the schedule.
void keep(const std::string& path, const std::string& what, const std::vector<Timed>& times) {
  std::ofstream file(path, std::ios::app);
  for (const Timed& timed : times) file << what << '\t' << timed.microseconds << '\t' << cpu::describe(timed.schedule) << '\n';
}

// `chosen`: the model's first choice; else the one of `times` with the lowest predicted time.
Ranking rank(const kernel::Kernel& kernel, const cpu::Machine& machine, const std::vector<Timed>& times,
             const std::optional<Schedule>& chosen) {
  const cpu::CostModel model(kernel, machine);
  std::vector<double> predicted, measured;
  for (const Timed& timed : times) {
    predicted.push_back(model.microseconds(timed.schedule));
    measured.push_back(timed.microseconds);
  }
  auto first = static_cast<size_t>(std::min_element(predicted.begin(), predicted.end()) - predicted.begin());
  for (size_t i = 0; chosen && i < times.size(); ++i) {
    if (times[i].schedule == *chosen) first = i;
  }
  const auto [best, worst] = std::minmax_element(measured.begin(), measured.end());
  const Ranking ranking{spearman(predicted, measured), measured[first] / *best};
  std::printf("  ranking  Spearman %.2f over %zu schedules (%.2f to %.2f us); its first choice takes %.3f of the best's time\n",
              ranking.spearman, times.size(), *best, *worst, ranking.loss);
  if (measured[first] > *best) {
    const auto at = static_cast<size_t>(best - measured.begin());
    std::printf("    it is    %s\n    best is  %s\n", cpu::describe(times[first].schedule).c_str(),
                cpu::describe(times[at].schedule).c_str());
  }
  return ranking;
}

std::optional<Ranking> run_case(const Case& c, const Options& options) {
  const cpu::Machine machine = cpu::host_machine();
  const kernel::Kernel kernel = cpu::with_rows_arranged(kernel_of(c), machine);
  const cpu::LegalSchedules legal = cpu::legal_schedules(kernel, machine);
  const cpu::CostModel model(kernel, machine);
  const cpu::KernelRunner by_rules = cpu::KernelRunner::by_rules(kernel, machine);
  cpu::KernelTimer timer(kernel, machine);
  const cpu::KernelRunner alike(kernel, machine, by_rules.schedule());  // all its calls store alike
  const double usual = timer.time_in_turns(alike, alike, 5, 5).first;
  std::printf("%s\n", c.text.c_str());
  print("default", usual, usual, by_rules.schedule(), model);
  for (const Schedule& other : legal.neighbours(by_rules.schedule())) {
    if (other.streamed == by_rules.schedule().streamed) continue;
    const auto pair = timer.time_in_turns(alike, cpu::KernelRunner(kernel, machine, other), 5, 5);
    print("stores", usual * pair.second / pair.first, usual, other, model);
  }
  if (options.budget > 0) tune(kernel, machine, options, usual);
  if (options.sample == 0) return std::nullopt;
  Contest contest(kernel, machine, timer);
  contest.add(drawn(legal, by_rules.schedule(), options));
  contest.run(2, 1);
  for (int climb = 0; climb < 2; ++climb) {
    contest.add(legal.neighbours(contest.winner()));
    contest.run(1, 1);
  }
  contest.run(4, 1);
  const std::vector<Timed> times = contest.timed();
  print("best", times.front().microseconds, usual, times.front().schedule, model);
  const Ranking ranking = rank(kernel, machine, times, by_rules.schedule());
  for (size_t i = 0; i < std::min(times.size(), static_cast<size_t>(options.list)); ++i)
    print("", times[i].microseconds, usual, times[i].schedule, model);
  if (!options.times.empty()) keep(options.times, c.text, times);
  return ranking;
}

// The median ratio of the other's time to the default's, over rounds that time both.
double gain_over(cpu::KernelTimer& timer, const cpu::KernelRunner& by_rules, const cpu::KernelRunner& other, double& usual) {
  constexpr int kRounds = 9;
  constexpr double kMilliseconds = 1.5;
  std::vector<double> ratios;
  usual = std::numeric_limits<double>::max();
  for (int round = 0; round < kRounds; ++round) {
    const bool is_first = round % 2 == 0;
    const double before = is_first ? timer.time(by_rules, kMilliseconds) : timer.time(other, kMilliseconds);
    const double after = is_first ? timer.time(other, kMilliseconds) : timer.time(by_rules, kMilliseconds);
    ratios.push_back(is_first ? after / before : before / after);
    usual = std::min(usual, is_first ? before : after);
  }
  std::sort(ratios.begin(), ratios.end());
  return ratios[kRounds / 2];
}

// Sums of logarithms of gains, and their number.
using Tiers = std::map<std::string, std::pair<double, int>>;

// A line of a file of times.
struct TimedCase {
  std::string name;
  Timed timed;
};

std::vector<TimedCase> read_times(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw Error(Status::invalid_arguments, join("cannot read ", path));
  std::vector<TimedCase> all;
  for (std::string line; std::getline(file, line);) {
    const size_t first = line.find('\t'), second = line.find('\t', first + 1);
    const auto schedule = second == std::string::npos ? std::nullopt : cpu::schedule_of(line.substr(second + 1));
    if (!schedule)
      throw Error(Status::invalid_arguments, join("\"", line, "\": allowed is a case, a time, a schedule, tabs between"));
    all.push_back({line.substr(0, first), {*schedule, std::atof(line.c_str() + first + 1)}});
  }
  return all;
}

void run_against(const Case& c, const Schedule& schedule, Tiers& tiers) {
  const cpu::Machine machine = cpu::host_machine();
  const kernel::Kernel kernel = cpu::with_rows_arranged(kernel_of(c), machine);
  const cpu::KernelRunner by_rules(kernel, machine, cpu::KernelRunner::by_rules(kernel, machine).schedule());
  const bool is_same = by_rules.schedule() == schedule;
  double gain = 1, usual = 0;
  if (!is_same) {
    cpu::KernelTimer timer(kernel, machine);
    gain = gain_over(timer, by_rules, cpu::KernelRunner(kernel, machine, schedule), usual);
    std::printf("%-26s %10.2f us %6.3fx  %s  |  %s\n", c.text.c_str(), usual, gain, cpu::describe(by_rules.schedule()).c_str(),
                cpu::describe(schedule).c_str());
    std::fflush(stdout);
  }
  const int64_t bytes = moved_bytes(kernel);
  const char* const place = bytes < int64_t{1} << 20 ? "tiny" : bytes <= machine.caches.last ? "in cache" : "out of cache";
  const std::string type = bits_of(c.dtype) < 32 ? "16 bits" : "f32";
  for (const std::string& tier :
       {join(place, ", ", type, ", ", c.kind), join(place, ", ", type), std::string(place), std::string("all")}) {
    tiers[tier].first += std::log(gain);
    ++tiers[tier].second;
  }
}

void run_against_file(const std::string& path) {
  Tiers tiers;
  for (const TimedCase& line : read_times(path)) run_against(case_of(line.name), line.timed.schedule, tiers);
  for (const auto& [name, sum] : tiers)
    std::printf("%-32s %3d cases: the default is %.3fx as fast\n", name.c_str(), sum.second, std::exp(sum.first / sum.second));
}

std::vector<Ranking> rank_file(const std::string& path) {
  std::vector<std::pair<std::string, std::vector<Timed>>> cases;
  for (const TimedCase& line : read_times(path)) {
    if (line.timed.schedule.split) continue;  // chosen apart
    if (cases.empty() || cases.back().first != line.name) cases.push_back({line.name, {}});
    cases.back().second.push_back(line.timed);
  }
  std::vector<Ranking> all;
  const cpu::Machine machine = cpu::host_machine();
  for (const auto& [name, times] : cases) {
    std::printf("%s\n", name.c_str());
    all.push_back(rank(cpu::with_rows_arranged(kernel_of(case_of(name)), machine), machine, times, std::nullopt));
  }
  return all;
}

void print_summary(const std::vector<Ranking>& all) {
  if (all.empty()) return;
  double rank = 0, losses = 0, worst = 1;
  for (const Ranking& of_case : all) {
    rank += of_case.spearman;
    losses += std::log(of_case.loss);
    worst = std::max(worst, of_case.loss);
  }
  const auto cases = static_cast<double>(all.size());
  std::printf(
      "%zu cases: Spearman %.2f in the mean; the first choice behind the best by %.1f %% in the geometric mean, %.1f %% at "
      "worst\n",
      all.size(), rank / cases, 100 * (std::exp(losses / cases) - 1), 100 * (worst - 1));
}

Options options_of(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    const bool has_value = i + 1 < argc;
    if (name == "--calibrate") {
      cpu::with_measured_costs(cpu::host_machine());
    } else if (name == "--smoke") {
      options.cases = {"forward:f32:8x40"};
      options.budget = 5;
      options.sample = 3;
    } else if (name == "--budget" && has_value) {
      options.budget = std::atof(argv[++i]);
    } else if (name == "--sample" && has_value) {
      options.sample = std::atoi(argv[++i]);
    } else if (name == "--seed" && has_value) {
      options.seed = std::strtoull(argv[++i], nullptr, 10);
    } else if (name == "--times" && has_value) {
      options.times = argv[++i];
    } else if (name == "--against" && has_value) {
      options.against = argv[++i];
    } else if (name == "--ranking" && has_value) {
      options.ranking = argv[++i];
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
    if (!options.against.empty()) {
      lamina::run_against_file(options.against);
      return 0;
    }
    if (!options.ranking.empty()) {
      lamina::print_summary(lamina::rank_file(options.ranking));
      return 0;
    }
    std::vector<lamina::Ranking> all;
    for (const std::string& text : options.cases) {
      if (const auto ranking = lamina::run_case(lamina::case_of(text), options)) all.push_back(*ranking);
    }
    lamina::print_summary(all);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "schedules: %s\n", error.what());
    return 2;
  }
  return 0;
}
