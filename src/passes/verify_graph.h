// Invariants that hold after every pass. A failure is a bug in lamina: LAMINA_CHECK throws and names the op or value.
#pragma once

#include <span>
#include <string>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina {

// Ports and values refer to each other, every dtype is known, and producers precede consumers (so there is no cycle).
void verify_graph(const Graph& graph, const std::string& after);

// Every op is in exactly one partition. Partitions are in an order in which they can run (so each is convex), and their ports
// are the values that cross their borders.
void verify_partitions(const Graph& graph, std::span<const Partition> partitions);

}  // namespace lamina
