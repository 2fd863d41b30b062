#include "passes/pass.h"

#include <chrono>

#include "passes/verify_graph.h"

namespace lamina {

Graph run_passes(const Graph& graph, std::span<const GraphPass> passes, const PassObserver& observer) {
  verify_graph(graph, "finalize");
  std::optional<Graph> rewritten;
  for (size_t i = 0; i < passes.size(); ++i) {
    const Graph& current = rewritten ? *rewritten : graph;
    const auto start = std::chrono::steady_clock::now();
    std::optional<Graph> result = passes[i].run(current);
    const std::chrono::duration<double, std::milli> spent = std::chrono::steady_clock::now() - start;
    const bool changed = result.has_value();
    if (changed) {
      rewritten = std::move(result);
      verify_graph(*rewritten, passes[i].name);
    }
    if (observer) observer({passes[i].name, i, changed, spent.count(), rewritten ? *rewritten : graph});
  }
  return rewritten ? std::move(*rewritten) : graph;
}

}  // namespace lamina
