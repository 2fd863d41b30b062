// Searches for faults in random graphs, for any number of graphs:
//
//   random_graphs [--graphs N] [--seed S] [--engine cpu|kernels|opencl] [--out DIR] [--table] [--only-write]
//
// Engine `kernels` is the CPU without a primitive library: every op that has a kernel runs in it.
// A sum of values that cancel almost completely may be reported as a fault although it is none: the message shows both numbers.
// A graph with a fault is reduced to few ops and written to DIR as a dump that `lamina replay --check` runs. The exit status is
// 1 if a fault was found.
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <string>

#include "backends/cpu/support/kernels_alone.h"
#include "interface/json/json.h"
#include "interface/status.h"
#include "random/drawn.h"
#include "random/find_fault.h"
#include "random/random_recipe.h"

namespace lamina::testing {
namespace {

struct Options {
  uint64_t graphs = 1000, seed = 1;
  RandomGraphs wanted;
  std::string engine = "cpu", out = ".";
  bool only_write = false, table = false;
};

std::string write(const Recipe& recipe, const Options& options, uint64_t seed) {
  const std::string path = (std::filesystem::path(options.out) / join("random-", seed, ".json")).string();
  std::ofstream(path) << write_graph_json(recipe.build());
  return path;
}

void tell(const Options& options, const Backend& backend, uint64_t seed, const std::string& fault) {
  std::cout << "seed " << seed << ": " << fault << '\n';
  const Recipe small = shrink(random_recipe(seed, options.wanted), backend, seed);
  std::cout << "  " << small.steps.size() << " ops show it: " << write(small, options, seed) << '\n'
            << "  " << find_fault(small, backend, seed).fault << '\n'
            << std::flush;
}

void tell_drawn(const Drawn& drawn) {
  drawn.print(std::cout);
  for (const auto& never : {drawn.kinds_never_drawn(), drawn.types_never_drawn(), drawn.layouts_never_drawn()}) {
    for (const std::string& name : never) std::cout << "never drawn: " << name << '\n';
  }
}

int run(const Options& options) {
  std::shared_ptr<const Backend> gpu;
  if (options.engine != "cpu" && options.engine != "kernels") gpu = open_gpu_backend(options.engine);
  const Backend& backend = gpu ? *gpu : options.engine == "kernels" ? kernels_alone() : cpu_backend();
  size_t faults = 0, kernels = 0;
  std::map<std::string, size_t> partitions;
  Drawn drawn;
  for (uint64_t seed = options.seed; seed < options.seed + options.graphs; ++seed) {
    const Recipe recipe = random_recipe(seed, options.wanted);
    drawn.count(recipe);
    if (recipe.steps.empty()) continue;
    if (options.only_write) {
      write(recipe, options, seed);
      continue;
    }
    const Findings findings = find_fault(recipe, backend, seed);
    for (const auto& [name, count] : findings.partitions) partitions[name] += count;
    kernels += findings.kernels;
    if (!findings.fault.empty()) ++faults, tell(options, backend, seed, findings.fault);
  }
  std::cout << options.graphs << " graphs, " << drawn.ops() << " ops of " << drawn.kinds() << " kinds, " << kernels
            << " kernels interpreted";
  for (const auto& [name, count] : partitions) std::cout << ", " << count << " partitions " << name;
  std::cout << ", " << faults << " with a fault\n";
  if (options.table) tell_drawn(drawn);
  return faults == 0 ? 0 : 1;
}

}  // namespace
}  // namespace lamina::testing

int main(int argc, char** argv) {
  lamina::testing::Options options;
  CLI::App app("Looks for faults in random graphs");
  app.add_option("--graphs", options.graphs, "how many");
  app.add_option("--seed", options.seed, "of the first; the next has the next number");
  app.add_option("--most-ops", options.wanted.most_ops, "of a graph")->check(CLI::Range(1, 1000));
  app.add_option("--engine", options.engine, "cpu, kernels, cuda or opencl, the last two with :N for a device");
  app.add_option("--out", options.out, "folder for graphs with a fault")->check(CLI::ExistingDirectory);
  app.add_flag("--table", options.table, "print how often each op kind, type and layout was drawn, and what never was");
  app.add_flag("--only-write", options.only_write, "write all graphs to --out, run none");
  CLI11_PARSE(app, argc, argv);
  try {
    return lamina::testing::run(options);
  } catch (const lamina::Error& error) {
    std::cerr << "random_graphs: " << error.what() << '\n';
    return 2;
  }
}
