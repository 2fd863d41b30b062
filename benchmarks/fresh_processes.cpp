// Times calls in processes that start while other programs are busy: each process must first detect this
// (docs/decisions/0014).
//
//   fresh_processes [--processes N] [--seconds S] [--busy N] [--executors automatic,helpers,openmp]
//
// A process creates its inputs, compiles LayerNorm of 4096x768 in f32 and calls it for S seconds. Processes of the executors
// take turns, so that other programs on the machine disturb all of them equally. They first run without, then with N busy
// programs that compute and never sleep. The table has the mean microseconds per call divided by the idle mean of the same
// executor: the minimum, the median and the maximum over the processes, and the number of processes with at most 3.
#include <omp.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "graph/lamina.hpp"

namespace {

using Clock = std::chrono::steady_clock;
using namespace lamina::graph;

constexpr int64_t kRows = 4096, kColumns = 768;

// The mean time per call in a separate process.
double mean_microseconds(double seconds) {
  const auto tensor_of = [](size_t id, const std::vector<int64_t>& shape) {
    return logical_tensor(id, logical_tensor::data_type::f32, shape, logical_tensor::layout_type::strided);
  };
  const logical_tensor src = tensor_of(0, {kRows, kColumns}), gamma = tensor_of(1, {kColumns}), beta = tensor_of(2, {kColumns}),
                       dst = tensor_of(3, {kRows, kColumns});
  op norm(0, op::kind::LayerNorm, {src, gamma, beta}, {dst}, "norm");
  norm.set_attr(op::attr::keep_stats, false);
  graph whole(engine::kind::cpu);
  whole.add_op(norm);
  whole.finalize();
  const engine cpu(engine::kind::cpu, 0);
  stream on_cpu(cpu);
  const compiled_partition compiled = whole.get_partitions().at(0).compile({src, gamma, beta}, {dst}, cpu);
  std::vector<float> x(kRows * kColumns), y(x.size()), weights(kColumns, 1);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 89) * 0.37f - 11;
  const std::vector<tensor> inputs{{src, cpu, x.data()}, {gamma, cpu, weights.data()}, {beta, cpu, weights.data()}};
  const std::vector<tensor> outputs{{dst, cpu, y.data()}};
  const auto start = Clock::now();
  int calls = 0;
  double spent = 0;
  for (; spent < seconds; ++calls) {
    compiled.execute(on_cpu, inputs, outputs);
    spent = std::chrono::duration<double>(Clock::now() - start).count();
  }
  return spent / calls * 1e6;
}

double of_a_fresh_process(const char* self, const std::string& executor, double seconds) {
  const std::string command = "LAMINA_EXECUTOR=" + executor + " '" + self + "' --child " + std::to_string(seconds);
  FILE* const output = popen(command.c_str(), "r");
  double mean = 0;
  const bool is_read = output != nullptr && std::fscanf(output, "%lf", &mean) == 1;
  if (output == nullptr || pclose(output) != 0 || !is_read) throw std::runtime_error("a process has failed: " + command);
  return mean;
}

struct Options {
  int processes = 20, busy = 2;
  double seconds = 1;
  std::vector<std::string> executors{"automatic", "helpers", "openmp"};
};

std::vector<std::vector<double>> take_turns(const char* self, const Options& options, int processes) {
  std::vector<std::vector<double>> means(options.executors.size());
  for (int i = 0; i < processes; ++i)
    for (size_t e = 0; e < means.size(); ++e)
      means[e].push_back(of_a_fresh_process(self, options.executors[e], options.seconds));
  for (std::vector<double>& each : means) std::sort(each.begin(), each.end());
  return means;
}

std::vector<pid_t> start_busy_programs(int count) {
  std::vector<pid_t> programs;
  for (int i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child < 0) throw std::runtime_error("cannot start a busy program");
    if (child == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile unsigned value = 1;;) value = value * 3 + 1;
    }
    programs.push_back(child);
  }
  return programs;
}

double median(const std::vector<double>& sorted) { return sorted[sorted.size() / 2]; }

void compare(const char* self, const Options& options) {
  const auto idle = take_turns(self, options, std::min(options.processes, 5));
  const std::vector<pid_t> programs = start_busy_programs(options.busy);
  const auto busy = take_turns(self, options, options.processes);
  for (const pid_t program : programs) {
    kill(program, SIGKILL);
    waitpid(program, nullptr, 0);
  }
  std::printf("%d CPUs, %d busy programs, %d processes of %g s; mean microseconds of a call\n\n", omp_get_num_procs(),
              options.busy, options.processes, options.seconds);
  std::printf("%-10s %10s %10s %8s %8s %8s %12s\n", "executor", "idle", "busy", "least", "median", "largest", "at most 3x");
  for (size_t e = 0; e < options.executors.size(); ++e) {
    const double alone = median(idle[e]);
    const auto near = std::count_if(busy[e].begin(), busy[e].end(), [&](double mean) { return mean <= 3 * alone; });
    std::printf("%-10s %10.0f %10.0f %7.1fx %7.1fx %7.1fx %6d of %d\n", options.executors[e].c_str(), alone, median(busy[e]),
                busy[e].front() / alone, median(busy[e]) / alone, busy[e].back() / alone, static_cast<int>(near),
                options.processes);
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc == 3 && std::strcmp(argv[1], "--child") == 0) {
      std::printf("%f\n", mean_microseconds(std::atof(argv[2])));
      return 0;
    }
    Options options;
    for (int i = 1; i + 1 < argc; i += 2) {
      const std::string name = argv[i];
      if (name == "--processes") options.processes = std::max(1, std::atoi(argv[i + 1]));
      if (name == "--seconds") options.seconds = std::atof(argv[i + 1]);
      if (name == "--busy") options.busy = std::max(0, std::atoi(argv[i + 1]));
      if (name != "--executors") continue;
      options.executors.clear();
      std::istringstream names(argv[i + 1]);
      for (std::string executor; std::getline(names, executor, ',');) options.executors.push_back(executor);
    }
    compare(argv[0], options);
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fresh_processes: %s\n", error.what());
    return 1;
  }
}
