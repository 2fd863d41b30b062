#include "compiler/partitioning.h"

#include <atomic>
#include <cstdlib>
#include <string_view>

#include "backends/backend.h"
#include "compiler/verbose.h"
#include "interface/status.h"
#include "passes/core/reasons.h"
#include "passes/pipeline.h"

namespace lamina::compiler {

namespace {

// Read on every call: a program may allow the reference for some of its graphs.
bool allows_reference() {
  const char* const allowed = std::getenv("LAMINA_ALLOW_REFERENCE");
  return allowed != nullptr && std::string_view(allowed) == "1";
}

void leave_to_reference(std::vector<Partition>& partitions) {
  for (Partition& partition : partitions) {
    if (partition.supported) continue;
    const Op& op = partition.graph->op(partition.ops.front());
    if (!reference_backend().why_unsupported(*partition.graph, op).empty()) continue;
    partition.supported = partition.runs_on_reference = true;
    partition.reasons.front().push_back(make_reason(
        ReasonCode::on_reference, join(partition.unsupported_reason, "; the plain loops of the reference engine run it")));
  }
}

}  // namespace

std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id) {
  if (!graph.is_finalized()) {
    throw Error(Status::invalid_graph, "the graph is not finalized: call finalize before partitions are requested");
  }
  // The GPU is chosen when a partition is compiled; all GPUs have the same capabilities.
  const Capabilities& capabilities = graph.engine_kind == EngineKind::gpu ? gpu_capabilities() : cpu_backend();
  std::vector<Partition> partitions = partition_graph(graph, policy, capabilities, pass_observer(graph_id));
  if (graph.engine_kind != EngineKind::gpu && allows_reference()) leave_to_reference(partitions);
  for (Partition& partition : partitions) partition.id = next_id();
  return partitions;
}

uint64_t next_id() {
  static std::atomic<uint64_t> last{100000};
  return ++last;
}

}  // namespace lamina::compiler
