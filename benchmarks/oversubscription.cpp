// Times calls while other programs keep the cores busy: lamina and oneDNN in turns, each call timed separately.
//
//   oversubscription [--threads N] [--seconds S] [--busy 0,1,2,4] [--types f32,bf16] [--case NAME]... [--smoke]
//   [ROWSxCOLUMNS...]
//
// LAMINA_EXECUTOR selects the threads that lamina uses (docs/decisions/0014).
//
// Busy programs compute without sleeping and belong to this program's session, so that the scheduler weighs them only by
// priority: first with this program's priority, then with the lowest (nice 19). `share` is the time that a fair division of
// the cores predicts: the idle mean times (threads + busy programs) / cores. At the lowest priority the loss should be almost
// 0; the column shows the same number. `a region before` is not a busy program but an empty parallel region of OpenMP before
// each call, like a framework's threads that spin after their work. A turn lasts a tenth of a second. Before each turn, the
// threads of the previous one have gone to sleep.
#include <omp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <numeric>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "contenders.h"
#include "measure.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int threads = omp_get_num_procs();
  double seconds = 1;  // per contender and kind of oversubscription
  std::vector<int> busy = {0, 1, 2, 4};
  std::vector<Type> types = {Type::f32, Type::bf16};
  std::vector<Case> cases;
  std::vector<std::pair<int64_t, int64_t>> sizes;
};

// A process that computes without sleeping. It must be created before any thread, because a child does not have its parent's
// threads.
class BusyProgram {
 public:
  explicit BusyProgram(int niceness) : child_(fork()) {
    if (child_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpriority(PRIO_PROCESS, 0, niceness);
    raise(SIGSTOP);
    for (volatile unsigned value = 1;;) value = value * 3 + 1;
  }
  ~BusyProgram() {
    if (child_ <= 0) return;
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  BusyProgram(BusyProgram&& other) noexcept : child_(std::exchange(other.child_, -1)) {}
  BusyProgram& operator=(BusyProgram&&) = delete;

  void start() const { kill(child_, SIGCONT); }
  void stop() const {
    kill(child_, SIGSTOP);
    waitpid(child_, nullptr, WUNTRACED);
  }

 private:
  pid_t child_;
};

struct Background {
  std::string name;
  const std::vector<BusyProgram>* programs;
  int busy;
  bool has_region = false;
};

class Samples {
 public:
  void add(double microseconds) { all_.push_back(microseconds); }
  void sort() { std::sort(all_.begin(), all_.end()); }
  bool empty() const { return all_.empty(); }
  double mean() const { return std::accumulate(all_.begin(), all_.end(), 0.0) / static_cast<double>(all_.size()); }
  double quantile(double part) const { return all_[static_cast<size_t>(part * static_cast<double>(all_.size() - 1))]; }

 private:
  std::vector<double> all_;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void run_region() {
#pragma omp parallel
  {
    [[maybe_unused]] volatile int thread = omp_get_thread_num();
  }
}

void take_turn(const Contender& contender, const Background& background, double seconds, Samples& samples) {
  wait_for_idle_threads();
  contender.run();
  const auto turn = Clock::now();
  do {
    if (background.has_region) run_region();
    const auto start = Clock::now();
    contender.run();
    samples.add(seconds_since(start) * 1e6);
  } while (seconds_since(turn) < seconds);
}

std::vector<Samples> measure_in(const Background& background, const std::vector<Contender>& contenders, double seconds) {
  constexpr double kTurn = 0.1;
  for (int i = 0; i < background.busy; ++i) (*background.programs)[static_cast<size_t>(i)].start();
  if (background.busy > 0) std::this_thread::sleep_for(std::chrono::milliseconds(50));
  std::vector<Samples> samples(contenders.size());
  for (double done = 0; done < seconds || done == 0; done += kTurn) {
    for (size_t c = 0; c < contenders.size(); ++c) take_turn(contenders[c], background, std::min(kTurn, seconds), samples[c]);
  }
  for (int i = 0; i < background.busy; ++i) (*background.programs)[static_cast<size_t>(i)].stop();
  for (Samples& each : samples) each.sort();
  return samples;
}

// lamina, and the variant of oneDNN that is fastest on an idle machine.
std::vector<Contender> contenders_for(Case which, const Problem& problem, const Inputs& in, const Outputs& ours,
                                      const Outputs& theirs) {
  std::vector<Contender> all = {lamina_contender(which, problem, in, ours)};
  std::vector<Contender> ways = onednn_contenders(which, problem, in, theirs);
  if (ways.empty()) return all;
  size_t best = 0;
  if (ways.size() > 1) {
    const std::string name = measure({ways}, {0.1, 5, 1}).front().way;
    for (size_t w = 0; w < ways.size(); ++w) best = ways[w].name == name ? w : best;
  }
  all.push_back(std::move(ways[best]));
  return all;
}

void print_head(const Options& options) {
  std::printf("%d threads, %d CPUs, oneDNN %s; microseconds a call\n\n", options.threads, omp_get_num_procs(),
              onednn_version().c_str());
  std::printf("%-18s %-14s %-18s %-14s %10s %10s %10s %8s %7s %10s\n", "case", "problem", "background", "contender", "mean",
              "median", "99th pct", "of idle", "share", "of oneDNN");
}

void run_case(Case which, const Problem& problem, const std::vector<Background>& backgrounds, const Options& options) {
  const Inputs inputs(problem);
  const Outputs ours(problem), theirs(problem);
  const std::vector<Contender> contenders = contenders_for(which, problem, inputs, ours, theirs);
  std::vector<double> idle(contenders.size(), 0);
  for (const Background& background : backgrounds) {
    const std::vector<Samples> samples = measure_in(background, contenders, options.seconds);
    for (size_t c = 0; c < contenders.size(); ++c) {
      const double mean = samples[c].mean();
      if (idle[c] == 0) idle[c] = mean;
      const double share = std::max(1.0, static_cast<double>(options.threads + background.busy) / omp_get_num_procs());
      std::printf("%-18s %-14s %-18s %-14s %10.1f %10.1f %10.1f %7.2fx %6.2fx ", name_of(which), describe(problem).c_str(),
                  background.name.c_str(), contenders[c].name.c_str(), mean, samples[c].quantile(0.5),
                  samples[c].quantile(0.99), mean / idle[c], share);
      if (c == 0 && contenders.size() > 1)
        std::printf("%9.2fx\n", mean / samples[1].mean());
      else
        std::printf("%10s\n", "-");
    }
    std::fflush(stdout);
  }
}

[[noreturn]] void fail_usage(const std::string& what) {
  std::fprintf(
      stderr,
      "oversubscription: %s; usage: [--threads N] [--seconds S] [--busy 0,1,2,4] [--types f32,bf16] [--case NAME]... [--smoke] "
      "[ROWSxCOLUMNS...]\n",
      what.c_str());
  std::exit(2);
}

std::vector<std::string> parts_of(const std::string& list) {
  std::vector<std::string> parts;
  std::istringstream text(list);
  for (std::string part; std::getline(text, part, ',');) parts.push_back(part);
  return parts;
}

Type type_of(const std::string& name) {
  for (const Type type : {Type::f32, Type::bf16, Type::f16, Type::f64}) {
    if (name == name_of(type)) return type;
  }
  fail_usage("type '" + name + "' is none of f32, bf16, f16, f64");
}

Case case_of(const std::string& name) {
  for (const CaseTraits& each : kCases) {
    if (name == each.name) return each.which;
  }
  fail_usage("no case '" + name + "' (contenders.h has them)");
}

std::pair<int64_t, int64_t> size_of(const std::string& text) {
  long long rows = 0, columns = 0;
  char rest = 0;
  if (std::sscanf(text.c_str(), "%lldx%lld%c", &rows, &columns, &rest) != 2 || rows <= 0 || columns <= 0)
    fail_usage("cannot use '" + text + "'");
  return {rows, columns};
}

int number_of(const std::string& text, int least) {
  const int number = std::atoi(text.c_str());
  if (number < least || number > 1024) fail_usage("'" + text + "' is no number from " + std::to_string(least) + " to 1024");
  return number;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const std::string argument = arguments[i];
    const auto value = [&]() -> std::string {
      if (i + 1 == count) fail_usage(argument + " needs a value");
      return arguments[++i];
    };
    if (argument == "--smoke") {
      options.seconds = 0;
      options.sizes = {{8, 96}};
    } else if (argument == "--threads") {
      options.threads = number_of(value(), 1);
    } else if (argument == "--seconds") {
      options.seconds = std::atof(value().c_str());
    } else if (argument == "--busy") {
      options.busy.clear();
      for (const std::string& part : parts_of(value())) options.busy.push_back(number_of(part, 0));
    } else if (argument == "--types") {
      options.types.clear();
      for (const std::string& part : parts_of(value())) options.types.push_back(type_of(part));
    } else if (argument == "--case") {
      options.cases.push_back(case_of(value()));
    } else {
      options.sizes.push_back(size_of(argument));
    }
  }
  if (options.cases.empty()) options.cases = {Case::forward, Case::backward, Case::chain};
  if (options.sizes.empty()) options.sizes = {{4096, 768}};
  return options;
}

void run_all(const Options& options) {
  const int most = options.busy.empty() ? 0 : *std::max_element(options.busy.begin(), options.busy.end());
  std::vector<BusyProgram> equal, lowest;
  for (int i = 0; i < most; ++i) {
    equal.emplace_back(0);
    lowest.emplace_back(19);
  }
  std::vector<Background> backgrounds;
  if (std::ranges::count(options.busy, 0) > 0) backgrounds.push_back({"nobody", &equal, 0});
  backgrounds.push_back({"a region before", &equal, 0, true});  // before the busy programs, whose effect on lamina lasts longer
  for (const int busy : options.busy) {
    if (busy > 0) backgrounds.push_back({std::to_string(busy) + " busy", &equal, busy});
  }
  for (const int busy : options.busy) {
    if (busy > 0) backgrounds.push_back({std::to_string(busy) + " busy, lowest", &lowest, busy});
  }
  omp_set_num_threads(options.threads);
  print_head(options);
  for (const auto& [rows, columns] : options.sizes) {
    for (const Case which : options.cases) {
      for (const Type type : options.types) run_case(which, {rows, columns, type}, backgrounds, options);
    }
  }
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  try {
    bench::run_all(bench::parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "oversubscription: %s\n", error.what());
    return 1;
  }
}
