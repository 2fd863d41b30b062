// What lamina tells when the environment asks for it:
//   LAMINA_VERBOSE=1                  a line on stdout per compile and per execution
//   LAMINA_GRAPH_DUMP=graph,subgraph  JSON files in the working directory: graph-<graph id>.json when partitioning starts,
//                                     graph-<partition id>-<hash>.json when a partition is compiled
// Both are read once. Without them nothing here costs more than a test of a flag.
#pragma once

#include <chrono>
#include <cstdint>

#include "interface/graph.h"

namespace lamina::api {

class CompiledPartition;

void report_compile(const CompiledPartition& compiled);

// Prints the line of an execution when it goes out of scope.
class ExecutionTimer {
 public:
  explicit ExecutionTimer(const CompiledPartition& compiled);
  ~ExecutionTimer();
  ExecutionTimer(const ExecutionTimer&) = delete;
  ExecutionTimer& operator=(const ExecutionTimer&) = delete;

 private:
  const CompiledPartition* compiled_;  // null when nothing is to be printed
  std::chrono::steady_clock::time_point start_;
};

// Throw Error(runtime_error) when the file cannot be written.
void dump_graph(const Graph& graph, uint64_t graph_id);
void dump_subgraph(const Graph& graph, uint64_t partition_id);

// Process-wide, from 100001 on, over graphs and partitions together, so that no two dumps share a name.
uint64_t next_id();

}  // namespace lamina::api
