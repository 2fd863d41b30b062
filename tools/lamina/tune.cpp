#include "lamina/tune.h"

#include <omp.h>

#include <algorithm>
#include <iostream>

#include "compiler/compile.h"
#include "compiler/ports.h"
#include "interface/status.h"
#include "lamina/bar.h"
#include "lamina/load.h"
#include "passes/pipeline.h"

namespace lamina::driver {
namespace {

void tune_partition(const Partition& partition, const Backend& backend, const TuneOptions& options, Bar& bar) {
  const std::string label = compiler::label_of(partition);
  TuningRequest request{.milliseconds = options.milliseconds, .again = options.again};
  request.progress = [&](size_t kernel, size_t count, double done) {
    bar.show(join(label, ", kernel ", kernel + 1, '/', count), done);
  };
  const compiler::PortTensors ports = compiler::known_ports(partition);
  const size_t timed = compiler::tune_partition(partition, ports.inputs, ports.outputs, backend, request);
  const auto compiled = compiler::compile_partition(partition, backend);
  bar.clear();
  std::cout << "  " << label << ": " << timed << (timed == 1 ? " kernel" : " kernels") << " timed\n";
  const ExecutableInfo& info = compiled->info();
  for (size_t i = 0; i < std::min(info.kernels.size(), info.schedules.size()); ++i) {
    if (!info.schedules[i].empty()) std::cout << "    " << info.kernels[i] << "\n      " << info.schedules[i] << '\n';
  }
}

}  // namespace

int tune(const TuneOptions& options) {
  backend_for(options.engine, options.device);  // reports a missing engine before anything is read
  std::vector<Graph> graphs;
  for (const std::string& file : options.files) graphs.push_back(load_graph(file, options.overrides));
  if (options.threads > 0) omp_set_num_threads(options.threads);
  if (const std::string why = compiler::why_not_cached_on_disk(); !why.empty())
    std::cerr << why << ": the schedules are printed, but not stored\n";
  const auto policy = options.policy == "debug" ? PartitionPolicy::debug : PartitionPolicy::fusion;
  bool all_supported = true;
  Bar bar(options.files.size());
  for (size_t i = 0; i < graphs.size(); ++i) {
    bar.next_file(options.files[i]);
    const Backend& backend = backend_of(graphs[i], options.files[i], options.engine, options.device);
    std::cout << options.files[i] << ", engine " << backend.name() << '\n';
    try {
      for (const Partition& partition : partition_graph(graphs[i], policy, backend)) {
        if (partition.supported) {
          tune_partition(partition, backend, options, bar);
          continue;
        }
        all_supported = false;
        std::cerr << place_of(options.files[i], partition) << "not supported: " << partition.unsupported_reason << '\n';
      }
    } catch (const Error& error) {
      throw error.in_file(options.files[i]);
    }
  }
  return all_supported ? 0 : 1;
}

}  // namespace lamina::driver
