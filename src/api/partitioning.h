// From a user's graph to the partitions that its engine can compile.
#pragma once

#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::api {

// Throws Error(invalid_graph) when the graph is not finalized, Error(unimplemented) for an engine kind without a backend.
// Partition ids are unique in the process. `graph_id` names the graph in dumps.
std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id);

}  // namespace lamina::api
