// What every pass must leave behind. A failure is a bug in lamina: LAMINA_CHECK throws and names the place.
#pragma once

#include <span>
#include <string>

#include "interface/graph.h"
#include "interface/partition.h"

namespace lamina {

// Ports and values name each other, every dtype is known, producers come before consumers (so there is no cycle).
void verify_graph(const Graph& graph, const std::string& after);

// Every op is in exactly one partition, partitions stand in an order in which they can run (so each is convex), and their
// ports are the values that cross their borders.
void verify_partitions(const Graph& graph, std::span<const Partition> partitions);

}  // namespace lamina
