// Runs passes. Each pass is timed and its result verified. An observer is called after each one, and may print or dump
// changes.
#pragma once

#include <functional>
#include <optional>
#include <span>

#include "interface/graph.h"

namespace lamina {

struct GraphPass {
  const char* name;
  std::optional<Graph> (*run)(const Graph&);  // nothing: the graph does not change
};

struct PassReport {
  const char* name;
  size_t position;  // among the passes of the run
  bool changed;
  double milliseconds;  // of the pass, without its verification
  const Graph& graph;   // after the pass
};
using PassObserver = std::function<void(const PassReport&)>;

// The graph after all passes. verify_graph checks it after each pass, and throws an error that names the pass.
Graph run_passes(const Graph& graph, std::span<const GraphPass> passes, const PassObserver& observer);

}  // namespace lamina
