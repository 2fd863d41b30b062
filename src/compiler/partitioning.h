// From a user's graph to the partitions that its engine can compile.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

// Throws Error(invalid_graph) when the graph is not finalized, Error(unimplemented) for an engine kind without a backend.
// What the CPU does not run is left to the reference's plain loops where LAMINA_ALLOW_REFERENCE=1 says so, and told with a
// reason. Partition ids are unique in the process. `graph_id` names the graph in dumps.
std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id);

// Process-wide, from 100001 on, over graphs and partitions together, so that no two dumps share a name.
uint64_t next_id();

}  // namespace lamina::compiler
