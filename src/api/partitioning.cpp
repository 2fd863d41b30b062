#include "api/partitioning.h"

#include "api/verbose.h"
#include "backends/backend.h"
#include "interface/status.h"
#include "passes/pipeline.h"

namespace lamina::api {

namespace {

// What passes ask of a backend, answered by a backend.
class BackendCapabilities : public Capabilities {
 public:
  explicit BackendCapabilities(const Backend& backend) : backend_(backend) {}
  std::string why_unsupported(const Graph& graph, const Op& op) const override { return backend_.why_unsupported(graph, op); }

 private:
  const Backend& backend_;
};

// A device is chosen when a partition is compiled: what runs is the same on all.
class GpuCapabilities : public Capabilities {
 public:
  std::string why_unsupported(const Graph& graph, const Op& op) const override { return gpu_why_unsupported(graph, op); }
};

}  // namespace

std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id) {
  if (!graph.is_finalized()) {
    throw Error(Status::invalid_graph, "the graph is not finalized: call finalize before asking for partitions");
  }
  std::vector<Partition> partitions =
      graph.engine_kind == EngineKind::gpu
          ? partition_graph(graph, policy, GpuCapabilities(), pass_observer(graph_id))
          : partition_graph(graph, policy, BackendCapabilities(cpu_backend()), pass_observer(graph_id));
  for (Partition& partition : partitions) partition.id = next_id();
  return partitions;
}

}  // namespace lamina::api
