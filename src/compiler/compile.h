// Compilation of a partition, used by the C API, the driver, tests and benchmarks.
//
//   joined_ports -> extract_subgraph -> fuse -> tile_regions -> make_plan -> Backend::compile
//
// The ports get their shapes; the partition becomes a separate graph whose inner shapes are inferred again; that graph is
// fused with every shape known, tiled and planned; the backend compiles the plan. A backend that runs graphs gets the graph
// instead.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backends/backend.h"
#include "compiler/compiled_partition.h"
#include "interface/partition.h"
#include "kernels/plan.h"
#include "passes/extract_subgraph.h"

namespace lamina::compiler {

// The decisions about a subgraph before planning; empty for a backend that runs graphs.
struct Decisions {
  std::vector<FusionGroup> groups;             // of the subgraph's ops, with reasons
  std::vector<TileRegion> regions;             // of the groups
  std::vector<std::vector<int>> ops_of_steps;  // kernel::ops_of_steps of the plan
};

// The input and decisions of a compilation, for checks and explanations.
struct CompileRecord : Decisions {
  Subgraph subgraph;
};

// `inputs` and `outputs` describe the ports, by id and in any order; outputs may have unknown shapes and layout any. A cached
// executable (compile_cache.h) is reused unless a record is requested. `allocator` is that of the engine, or null. Throws
// Error.
std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                                           std::span<const LogicalTensor> outputs, const Backend& backend,
                                                           CompileRecord* record = nullptr,
                                                           const Allocator* allocator = nullptr);

// The same, with the ports as the graph describes them.
std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, const Backend& backend,
                                                           CompileRecord* record = nullptr);

// A partition's plan, without its compilation, and its ports with all shapes and strides. The backend runs plans.
struct PlannedPartition {
  std::vector<LogicalTensor> inputs, outputs;
  kernel::Plan plan;
};
PlannedPartition plan_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                std::span<const LogicalTensor> outputs, const Backend& backend);

// Measures schedules of the partition's kernels for these ports (as in compile_partition), in memory that it allocates.
// Partitions that are compiled afterwards use the fastest schedules; compiled partitions do not change. Returns the number of
// kernels timed. Throws Error.
size_t tune_partition(const Partition& partition, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs,
                      const Backend& backend, const TuningRequest& request);

// Why compiled code and tuning results are not available to other processes; "" if they are kept on disk.
std::string why_not_cached_on_disk();

// The steps after extract_subgraph.
kernel::Plan plan_subgraph(const Subgraph& subgraph, const kernel::PlanTarget& target, Decisions* decisions = nullptr);
std::unique_ptr<Executable> compile_subgraph(const Subgraph& subgraph, const Backend& backend, Decisions* decisions = nullptr);

}  // namespace lamina::compiler
