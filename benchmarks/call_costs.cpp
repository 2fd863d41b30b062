// The overhead of a call: compiling a partition (in a fresh process, cold, from the cache in memory, from the cache on disk,
// and with a tuned schedule on disk) and executing one of 64 elements, compared with oneDNN. A Google Benchmark program, with
// its options.
#include <benchmark/benchmark.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <utility>

#include "lamina_cases.h"

namespace bench {
namespace {

using Clock = std::chrono::steady_clock;
using lamina::graph::engine;
using lamina::graph::partition;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

void compile(const partition& part) {
  const engine cpu(engine::kind::cpu, 0);
  benchmark::DoNotOptimize(part.compile(part.get_input_ports(), part.get_output_ports(), cpu));
}

double compile_time(Case which) {
  const partition part = lamina_graph(which, {128, 768, Type::f32}).get_partitions().at(0);
  const auto start = Clock::now();
  compile(part);
  return seconds_since(start);
}

// Returns the result of `work` in a child process, or a negative number if the child failed.
double in_fresh_process(const std::function<double()>& work) {
  int ends[2];
  if (pipe(ends) != 0) return -1;
  const pid_t child = fork();
  if (child == 0) {
    double result = -1;
    try {
      result = work();
    } catch (const std::exception&) {
    }
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  double result = -1;
  if (child < 0 || read(ends[0], &result, sizeof result) != sizeof result) result = -1;
  close(ends[0]);
  if (child > 0) waitpid(child, nullptr, 0);
  return result;
}

void take_manual_time(benchmark::State& state, double seconds) {
  if (seconds < 0) {
    state.SkipWithError("compiling failed in the child process");
    return;
  }
  state.SetIterationTime(seconds);
}

// ---- compile. Fresh processes come first: a child must not inherit threads or a compiler that exists already.

void compile_in_fresh_process(benchmark::State& state, Case which) {
  for (auto _ : state) take_manual_time(state, in_fresh_process([&] { return compile_time(which); }));
}

// `is_tuned`: the disk also contains a measured choice of the schedule.
void compile_from_disk(benchmark::State& state, Case which, bool is_tuned) {
  std::string folder = (std::filesystem::temp_directory_path() / "lamina_call_costs_XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return state.SkipWithError("no folder for the cache");
  const auto with_cache = [&] {
    setenv("LAMINA_CACHE_DIR", folder.c_str(), 1);
    return compile_time(which);
  };
  in_fresh_process([&] {
    if (is_tuned) setenv("LAMINA_TUNE", "1", 1);
    return with_cache();
  });
  if (std::filesystem::is_empty(folder)) {
    state.SkipWithError("nothing was written to LAMINA_CACHE_DIR");
  } else {
    for (auto _ : state) take_manual_time(state, in_fresh_process(with_cache));
  }
  std::filesystem::remove_all(folder);
}

// Uses another row length and epsilon each time, so that the kernel is in no cache.
Problem unseen_problem() {
  static int64_t columns = 512;
  return {128, columns += 16, Type::f32};
}

void compile_from_disk(benchmark::State& state, Case which) { compile_from_disk(state, which, false); }
void compile_tuned_from_disk(benchmark::State& state, Case which) { compile_from_disk(state, which, true); }

void compile_cold(benchmark::State& state, Case which) {
  for (auto _ : state) {
    const Problem problem = unseen_problem();
    const float epsilon = kEpsilon * (1 + static_cast<float>(problem.columns) * 1e-4f);
    const partition part = lamina_graph(which, problem, epsilon).get_partitions().at(0);
    const auto start = Clock::now();
    compile(part);
    state.SetIterationTime(seconds_since(start));
  }
}

void compile_from_memory(benchmark::State& state, Case which) {
  const partition part = lamina_graph(which, {128, 768, Type::f32}).get_partitions().at(0);
  compile(part);
  for (auto _ : state) compile(part);
}

// A oneDNN engine, descriptor and primitive.
void create_onednn_cold(benchmark::State& state, Case which) {
  for (auto _ : state) {
    const Problem problem = unseen_problem();
    const Inputs inputs(problem);
    const Outputs outputs(problem);
    const auto start = Clock::now();
    const auto ways = onednn_contenders(which, problem, inputs, outputs);
    state.SetIterationTime(seconds_since(start));
    if (ways.empty()) return state.SkipWithError("oneDNN is not there");
  }
}

void create_onednn_again(benchmark::State& state, Case which) {
  const Problem problem{128, 768, Type::f32};
  const Inputs inputs(problem);
  const Outputs outputs(problem);
  if (onednn_contenders(which, problem, inputs, outputs).empty()) return state.SkipWithError("oneDNN is not there");
  for (auto _ : state) benchmark::DoNotOptimize(onednn_contenders(which, problem, inputs, outputs));
}

// ---- execute

void execute_lamina(benchmark::State& state, Case which) {
  const Problem problem{1, 64, Type::f32};
  const Inputs inputs(problem);
  const Outputs outputs(problem);
  const Contender contender = lamina_contender(which, problem, inputs, outputs);
  for (auto _ : state) contender.run();
}

void execute_onednn(benchmark::State& state, Case which) {
  const Problem problem{1, 64, Type::f32};
  const Inputs inputs(problem);
  const Outputs outputs(problem);
  const auto ways = onednn_contenders(which, problem, inputs, outputs);
  if (ways.empty()) return state.SkipWithError("oneDNN is not there");
  for (auto _ : state) ways.front().run();
}

using Body = void (*)(benchmark::State&, Case);

benchmark::internal::Benchmark* add(const std::string& name, Body body, Case which) {
  return benchmark::RegisterBenchmark((name + "/" + name_of(which)).c_str(),
                                      [=](benchmark::State& state) { body(state, which); });
}

void add_all() {
  const Case compiled[] = {Case::forward, Case::backward, Case::chain};
  for (const Case which : compiled) {
    for (const auto& [name, body] : {std::pair<const char*, Body>("compile/lamina, fresh process", compile_in_fresh_process),
                                     {"compile/lamina, from disk", compile_from_disk},
                                     {"compile/lamina, from disk, tuned", compile_tuned_from_disk}})
      add(name, body, which)->UseManualTime()->Iterations(9)->Unit(benchmark::kMillisecond);
  }
  for (const Case which : compiled) {
    add("compile/lamina, cold", compile_cold, which)->UseManualTime()->Iterations(15)->Unit(benchmark::kMillisecond);
    add("compile/lamina, from memory", compile_from_memory, which)->Unit(benchmark::kMicrosecond);
    if (which == Case::chain) continue;  // no one primitive to compare with
    add("compile/oneDNN, cold", create_onednn_cold, which)->UseManualTime()->Iterations(15)->Unit(benchmark::kMillisecond);
    add("compile/oneDNN, again", create_onednn_again, which)->Unit(benchmark::kMicrosecond);
  }
  for (const Case which : {Case::forward, Case::forward_stats, Case::backward, Case::chain, Case::softmax}) {
    add("execute 1x64/lamina", execute_lamina, which)->Unit(benchmark::kMicrosecond);
    add("execute 1x64/oneDNN", execute_onednn, which)->Unit(benchmark::kMicrosecond);
  }
}

}  // namespace
}  // namespace bench

int main(int count, char** arguments) {
  bench::add_all();
  benchmark::Initialize(&count, arguments);
  if (benchmark::ReportUnrecognizedArguments(count, arguments)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}
