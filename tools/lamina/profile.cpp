#include "lamina/profile.h"

#include <omp.h>

#include <chrono>
#include <iostream>
#include <memory>
#include <vector>

#include "compiler/compile.h"
#include "compiler/profile.h"
#include "interface/status.h"
#include "lamina/bar.h"
#include "lamina/device_tensors.h"
#include "lamina/files.h"
#include "lamina/fill.h"
#include "lamina/load.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

// All partitions of a graph, compiled, with memory for all tensors.
class ProfiledGraph {
 public:
  ProfiledGraph(const Graph& graph, const Backend& backend, const ProfileOptions& options, Bar& bar) : backend_(backend) {
    if (backend.limits() == nullptr)
      throw Error(Status::unimplemented,
                  join("lamina profile: the ", backend.name(), " backend does not measure its steps, allowed is cpu"));
    const auto policy = options.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
    fill(graph, options.seed);
    const std::vector<Partition> partitions = partition_graph(graph, policy, backend);
    for (const Partition& partition : partitions) {
      bar.show(join("partition ", compiled_.size() + 1, '/', partitions.size(), ", compiling"));
      add(partition, options);
    }
  }

  // Runs the whole graph once.
  void run(compiler::Profile& profile) const {
    for (const Run& run : runs_) run.execution->run(profile);
  }
  const MachineLimits& limits() const { return *backend_.limits(); }

 private:
  struct Run {
    std::unique_ptr<const DeviceTensors> tensors;
    std::unique_ptr<const Execution> execution;
  };

  void fill(const Graph& graph, uint64_t seed) {
    std::vector<ValueIndex> inputs;
    for (const ValueIndex input : graph.inputs()) {
      inputs.push_back(input);
      buffers_[graph.tensor(input).id] = std::make_shared<Buffer>(graph.tensor(input));
    }
    fill_inputs(graph, inputs, seed, buffers_);
  }

  void add(const Partition& partition, const ProfileOptions& options) {
    if (!partition.supported)
      throw Error(Status::unimplemented, join(place_of(options.file, partition), "not supported by the ", backend_.name(),
                                              " backend: ", partition.unsupported_reason));
    compiled_.push_back(compiler::compile_partition(partition, backend_));
    const compiler::CompiledPartition& compiled = *compiled_.back();
    std::vector<std::shared_ptr<Buffer>> sources, results;
    for (const LogicalTensor& tensor : compiled.inputs()) sources.push_back(buffers_.at(tensor.id));
    for (const LogicalTensor& tensor : compiled.outputs())
      results.push_back(buffers_[tensor.id] = std::make_shared<Buffer>(tensor));
    Run run{std::make_unique<const DeviceTensors>(backend_, sources, results), nullptr};
    run.execution = std::make_unique<const Execution>(compiled, *run.tensors, options.threads);
    runs_.push_back(std::move(run));
  }

  const Backend& backend_;
  Buffers buffers_;
  std::vector<std::unique_ptr<const compiler::CompiledPartition>> compiled_;
  std::vector<Run> runs_;
};

void run_for(double seconds, const ProfiledGraph& graph, compiler::Profile& profile) {
  compiler::Profile first;
  graph.run(first);  // packs constants, starts threads
  const auto start = std::chrono::steady_clock::now();
  do {
    graph.run(profile);
  } while (std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() < seconds);
}

}  // namespace

int profile(const ProfileOptions& options) {
  backend_for(options.engine, options.device);  // reports a missing engine before anything is read
  const Graph graph = load_graph(options.file, options.overrides);
  if (options.threads > 0) omp_set_num_threads(options.threads);
  const Backend& backend = backend_of(graph, options.file, options.engine, options.device);
  Bar bar(1);
  bar.next_file(options.file);
  const auto profiled = [&] {
    try {
      return std::make_unique<const ProfiledGraph>(graph, backend, options, bar);
    } catch (const Error& error) {
      throw error.in_file(options.file);
    }
  }();
  bar.show("executing");
  compiler::Profile times;
  run_for(options.repeat_seconds, *profiled, times);
  bar.clear();
  OutputFiles files;
  const auto write = [&](const std::string& path, const std::string& text) {
    if (!path.empty()) files.add(path, [&](std::ostream& out) { out << text << '\n'; });
  };
  write(options.json_file, compiler::profile_json(times, profiled->limits(), options.file));
  write(options.trace_file, compiler::profile_trace(times));
  files.commit();
  std::cout << compiler::profile_table(times, profiled->limits(), options.file);
  return 0;
}

}  // namespace lamina::driver
