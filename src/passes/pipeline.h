// The passes in their order, from a user's graph to partitions. pipeline.cpp is read top to bottom, with the reason for each
// pass standing where it stands.
#pragma once

#include <memory>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"
#include "passes/capabilities.h"
#include "passes/pass.h"

namespace lamina {

// Canonicalises a finalized graph, raises what is written out in small ops (policy fusion), fuses and partitions it. Partitions
// are in topological order; each op is in exactly one; ops that the backend refuses are partitions of one op with supported ==
// false and the reason. `observer` is told of every pass over the graph.
std::vector<Partition> partition_graph(const Graph& graph, PartitionPolicy policy, const Capabilities& capabilities,
                                       const PassObserver& observer = nullptr);

}  // namespace lamina
