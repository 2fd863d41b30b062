// Compiling a partition, for everybody who does: the C API, the driver, tests and benchmarks.
//
//   joined_ports -> extract_subgraph -> fuse -> tile_regions -> make_plan -> Backend::compile
//
// Ports get their shapes, the partition becomes a graph of its own whose inner shapes are inferred anew, that graph is fused
// once, with every shape known, tiled and planned; the backend gets the plan. A backend that runs graphs gets the graph.
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

// What was decided about a subgraph before its plan was made; empty for a backend that runs graphs.
struct Decisions {
  std::vector<FusionGroup> groups;  // of the subgraph's ops, with reasons
  std::vector<TileRegion> regions;  // of the groups
};

// What a compilation saw and decided, for those who check or explain it.
struct CompileRecord : Decisions {
  Subgraph subgraph;
};

// `inputs` and `outputs` describe the ports, by id and in any order; outputs may be of unknown shape and layout any. What was
// compiled before is taken from the cache (compile_cache.h), unless a record is asked for. Throws Error.
std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, std::span<const LogicalTensor> inputs,
                                                           std::span<const LogicalTensor> outputs, const Backend& backend,
                                                           CompileRecord* record = nullptr);

// With the ports as the graph has them.
std::unique_ptr<const CompiledPartition> compile_partition(const Partition& partition, const Backend& backend,
                                                           CompileRecord* record = nullptr);

// Finds by measuring, on memory of its own, how the partition's kernels run best for these ports (as compile_partition takes
// them). Partitions that are compiled from then on run so; those that are compiled already do not change. How many kernels were
// timed. Throws Error.
size_t tune_partition(const Partition& partition, std::span<const LogicalTensor> inputs, std::span<const LogicalTensor> outputs,
                      const Backend& backend, const TuningRequest& request);

// Why other processes will find nothing of what this one compiles and tunes; "" where it is kept on disk.
std::string why_not_kept_on_disk();

// The steps behind extract_subgraph.
kernel::Plan plan_subgraph(const Subgraph& subgraph, const kernel::PlanTarget& target, Decisions* decisions = nullptr);
std::unique_ptr<Executable> compile_subgraph(const Subgraph& subgraph, const Backend& backend, Decisions* decisions = nullptr);

}  // namespace lamina::compiler
