// From a user's graph to the partitions that its engine can compile.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina::compiler {

// With LAMINA_ALLOW_REFERENCE=1, ops that the CPU backend cannot run use the reference loops, and their reasons say so.
// Partition ids are unique in the process. `graph_id` identifies the graph in dumps. Throws Error(invalid_graph) if the graph
// is not finalized, Error(unimplemented) for an engine kind without a backend.
std::vector<Partition> partition_for_engine(const Graph& graph, PartitionPolicy policy, uint64_t graph_id);

// A process-wide counter from 100001 on, shared by graphs and partitions, so that no two dumps have the same name.
uint64_t next_id();

}  // namespace lamina::compiler
