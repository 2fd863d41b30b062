// The runner of passes: each one is timed, its result verified, and an observer told, who may print or dump what changed.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "interface/graph.h"

namespace lamina {

struct GraphPass {
  const char* name;
  std::optional<Graph> (*run)(const Graph&);  // nothing: the graph stays as it is
};

struct PassReport {
  const char* name;
  size_t position;  // among the passes of the run
  bool changed;
  double milliseconds;  // of the pass itself, without its verification
  const Graph& graph;   // after the pass
};
using PassObserver = std::function<void(const PassReport&)>;

// The graph after all passes. What a pass leaves behind is checked by verify_graph, which throws and names the pass.
Graph run_passes(const Graph& graph, std::span<const GraphPass> passes, const PassObserver& observer);

}  // namespace lamina
