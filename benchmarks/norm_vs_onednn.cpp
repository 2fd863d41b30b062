// lamina against oneDNN and against the machine's memory, on the normalisations (contenders.h says what each case does).
//
//   norm_vs_onednn [--threads N] [--seconds S] [ROWSxCOLUMNS...]
//
// All contenders of a case take turns in one process, round after round, so that what disturbs the machine disturbs all of
// them; each figure is the median of its rounds. GB/s count what must move: each big tensor once.
#include <omp.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "contenders.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 2;
  double seconds = 1.0;  // per case
  std::vector<std::pair<int64_t, int64_t>> sizes;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double time_of(const Contender& contender, int repeats) {
  const auto start = Clock::now();
  for (int i = 0; i < repeats; ++i) contender.run();
  return seconds_since(start) / repeats;
}

// So many runs that one sample takes a few hundred microseconds: a clock reading must not count.
int repeats_for(const Contender& contender) {
  contender.run();
  return std::clamp(static_cast<int>(3e-4 / time_of(contender, 1)), 1, 1000);
}

double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The median time of each contender, in turns for `seconds` but at least 15 rounds.
std::vector<double> measure(const std::vector<Contender>& contenders, double seconds) {
  std::vector<int> repeats;
  for (const Contender& contender : contenders) repeats.push_back(repeats_for(contender));
  std::vector<std::vector<double>> samples(contenders.size());
  const auto start = Clock::now();
  for (int round = 0; round < 15 || seconds_since(start) < seconds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) samples[i].push_back(time_of(contenders[i], repeats[i]));
  }
  std::vector<double> medians;
  for (auto& values : samples) medians.push_back(median(std::move(values)));
  return medians;
}

// The position of the fastest of [begin, end).
size_t fastest(const std::vector<double>& times, size_t begin, size_t end) {
  const auto first = times.begin();
  return static_cast<size_t>(
      std::min_element(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end)) - first);
}

void run_case(Case which, const Problem& problem, double seconds) {
  const Inputs inputs(problem);
  const Outputs ours(problem), theirs(problem), scratch(problem);
  std::vector<Contender> contenders = {lamina_contender(which, problem, inputs, ours)};
  for (Contender& way : onednn_contenders(which, problem, inputs, theirs)) contenders.push_back(std::move(way));
  const size_t roof_begin = contenders.size();
  for (Contender& way : roof_contenders(which, problem, inputs, scratch)) contenders.push_back(std::move(way));

  const std::vector<double> times = measure(contenders, seconds);
  const size_t peer = fastest(times, 1, roof_begin), roof = fastest(times, roof_begin, times.size());
  contenders[peer].run();
  const double bytes = static_cast<double>(problem.bytes()) * (big_reads(which) + 1);
  std::printf("%-19s %-15s %10.1f %10.1f %10.1f %8.1f %8.2fx %7.0f%%  %-18s %-17s %.1e\n", name_of(which),
              describe(problem).c_str(), times[0] * 1e6, times[peer] * 1e6, times[roof] * 1e6, bytes / times[0] * 1e-9,
              times[peer] / times[0], 100 * times[roof] / times[0], contenders[peer].name.c_str(),
              contenders[roof].name.c_str(), difference(problem, ours, theirs));
  std::fflush(stdout);
}

// A busy machine takes whole time slices away from spinning threads: such figures say nothing.
void warn_if_busy() {
  double load = 0;
  if (getloadavg(&load, 1) == 1 && load > 0.5) {
    std::printf("warning: other programs run (load %.1f); figures are not to be trusted\n", load);
  }
}

void run_all(const Options& options) {
  warn_if_busy();
  omp_set_num_threads(options.threads);
  std::printf("%d threads, %.1f s per case; time in us, median; speed-up = oneDNN / lamina; of roof = roof / lamina\n\n",
              options.threads, options.seconds);
  std::printf("%-19s %-15s %10s %10s %10s %8s %9s %8s  %-18s %-17s %s\n", "case", "problem", "lamina", "oneDNN", "roof", "GB/s",
              "speed-up", "of roof", "best of oneDNN", "best roof", "difference");
  for (const Case which : {Case::forward, Case::backward, Case::chain}) {
    for (const Type type : {Type::f32, Type::bf16}) {
      for (const auto& [rows, columns] : options.sizes) run_case(which, {rows, columns, type}, options.seconds);
    }
  }
}

[[noreturn]] void fail_usage(const char* argument) {
  std::fprintf(stderr, "norm_vs_onednn: cannot use '%s'; usage: [--threads N] [--seconds S] [ROWSxCOLUMNS...]\n", argument);
  std::exit(2);
}

Options parse(int count, char** arguments) {
  Options options;
  for (int i = 1; i < count; ++i) {
    const char* const argument = arguments[i];
    long long rows = 0, columns = 0;
    char rest = 0;
    if (std::strcmp(argument, "--threads") == 0 && i + 1 < count) {
      options.threads = std::atoi(arguments[++i]);
    } else if (std::strcmp(argument, "--seconds") == 0 && i + 1 < count) {
      options.seconds = std::atof(arguments[++i]);
    } else if (std::sscanf(argument, "%lldx%lld%c", &rows, &columns, &rest) == 2 && rows > 0 && columns > 0) {
      options.sizes.emplace_back(rows, columns);
    } else {
      fail_usage(argument);
    }
  }
  if (options.threads < 1 || options.seconds < 0) fail_usage("a count of threads below 1 or a negative time");
  if (options.sizes.empty()) options.sizes = {{128, 768}, {4096, 768}, {8192, 1024}};
  return options;
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  try {
    bench::run_all(bench::parse(count, arguments));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "norm_vs_onednn: %s\n", error.what());
    return 1;
  }
}
