#include "compiler/partitioning.h"

#include <atomic>

#include "backends/backend.h"
#include "compiler/verbose.h"
#include "interface/status.h"
#include "passes/pipeline.h"

namespace lamina::compiler {

namespace {

// A device is chosen when a partition is compiled: what runs is the same on all.
class GpuCapabilities final : public Capabilities {
 public:
  std::string why_unsupported(const Graph& graph, const Op& op) const override { return gpu_why_unsupported(graph, op); }
};

}  // namespace

std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id) {
  if (!graph.is_finalized()) {
    throw Error(Status::invalid_graph, "the graph is not finalized: call finalize before asking for partitions");
  }
  std::vector<Partition> partitions = graph.engine_kind == EngineKind::gpu
                                          ? partition_graph(graph, policy, GpuCapabilities(), pass_observer(graph_id))
                                          : partition_graph(graph, policy, cpu_backend(), pass_observer(graph_id));
  for (Partition& partition : partitions) partition.id = next_id();
  return partitions;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{100000};
  return ++last;
}

}  // namespace lamina::compiler
