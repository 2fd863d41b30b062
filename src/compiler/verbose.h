// Debug output that the environment requests:
//   LAMINA_VERBOSE=1   a line on stdout per compile and per execution; 2: also per pass over a graph, with its duration
//   LAMINA_GRAPH_DUMP  JSON files in the working directory, a comma list of
//       graph          graph-<graph id>.json when partitioning starts
//       pass           graph-<graph id>-<position>-<pass>.json after each pass that changed the graph
//       subgraph       graph-<partition id>-<hash>.json when a partition is compiled
// Both variables are read once; programs may override them afterwards. If they are not set, each call costs one test of a
// flag.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "interface/graph.h"
#include "passes/pass.h"

namespace lamina::compiler {

class CompiledPartition;

// Overrides the environment: 0 to 2, as LAMINA_VERBOSE.
inline constexpr int kMaxVerbose = 2;
void set_verbosity(int level);
// The same with a destination for the lines, for lamina_set_verbose_output (graph/text.h), which checks the level.
using VerboseWriter = void (*)(void* user, const char* line, size_t length);
void set_verbose_output(int level, VerboseWriter write, void* user);
// Overrides the environment for dumps of graphs and subgraphs; dumps of passes still follow the environment.
void set_dumps(bool graphs, bool subgraphs);

void report_compile(const CompiledPartition& compiled);

// Prints the line about an execution when it goes out of scope.
class ExecutionTimer {
 public:
  explicit ExecutionTimer(const CompiledPartition& compiled);
  ~ExecutionTimer();
  ExecutionTimer(const ExecutionTimer&) = delete;
  ExecutionTimer& operator=(const ExecutionTimer&) = delete;

 private:
  const CompiledPartition* compiled_;  // null if nothing is printed
  std::chrono::steady_clock::time_point start_;
};

// Throw Error(runtime_error) if the file cannot be written.
void dump_graph(const Graph& graph, uint64_t graph_id);
void dump_subgraph(const Graph& graph, uint64_t partition_id);
bool dumps_subgraphs();

// An observer that prints and dumps the passes over a graph as the environment requests; null if it requests nothing.
PassObserver pass_observer(uint64_t graph_id);

}  // namespace lamina::compiler
