// From a file on the command line to a finalized graph and its partitions.
#pragma once

#include <iosfwd>
#include <memory>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "lamina/overrides.h"
#include "passes/pipeline.h"

namespace lamina::driver {

// Reads, overrides, builds, checks. Throws Error with one sentence that begins with the file.
Graph load_graph(const std::string& file, const Overrides& overrides);

// The backend that `--engine` names, the CPU's without one. `device` chooses among GPUs: "cuda", "opencl", either with a number
// behind a colon, "" for the first there is. Throws Error(unimplemented) where there is no GPU.
const Backend& backend_for(const std::string& engine, const std::string& device);

// What partitioning asks of a backend.
class BackendCapabilities final : public Capabilities {
 public:
  explicit BackendCapabilities(const Backend& backend) : backend_(backend) {}
  std::string why_unsupported(const Graph& graph, const Op& op) const override { return backend_.why_unsupported(graph, op); }

 private:
  const Backend& backend_;
};

// A partition compiled for the shapes that the graph gives its ports.
struct CompiledPartition {
  std::vector<LogicalTensor> inputs, outputs;  // in port order, with strides
  Subgraph subgraph;
  std::unique_ptr<Executable> executable;
  double compile_ms = 0;  // extraction and compilation, as a caller waits for it
};

CompiledPartition compile_partition(const Partition& partition, const Backend& backend);

// `LayerNorm "ln0" + GELU "gelu"`.
std::string describe_ops(const Partition& partition);

// `FILE: op 3 (MatMul "mm"): ` for the first op of a partition, which stands for all of it.
std::string place_of(const std::string& file, const Partition& partition);

}  // namespace lamina::driver
