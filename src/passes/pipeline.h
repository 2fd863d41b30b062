// Runs the passes from a user's graph to partitions. pipeline.cpp lists them in execution order, each with the reason for its
// place.
#pragma once

#include <memory>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"
#include "passes/core/capabilities.h"
#include "passes/pass.h"

namespace lamina {

// Canonicalises a finalized graph, raises formulas of small ops (policy fusion), fuses and partitions it. Partitions are in
// topological order, and each op is in exactly one. Each op that the backend refuses is a separate partition with supported
// == false and the reason. `observer` is called after every pass over the graph.
std::vector<Partition> partition_graph(const Graph& graph, PartitionPolicy policy, const Capabilities& capabilities,
                                       const PassObserver& observer = nullptr);

}  // namespace lamina
