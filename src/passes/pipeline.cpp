#include "passes/pipeline.h"

#include "passes/canonicalize.h"
#include "passes/partition.h"
#include "passes/verify_graph.h"

namespace lamina {
namespace {

struct GraphPass {
  const char* name;
  Graph (*run)(const Graph&);
};

// The order, read top to bottom. What comes after works on canonical graphs only.
constexpr GraphPass kGraphPasses[] = {
    {"canonicalize", canonicalize},  // first: one spelling of every op, so that no later pass knows the older ones
};

Graph run_graph_passes(const Graph& graph) {
  verify_graph(graph, "finalize");
  Graph current = graph;
  for (const GraphPass& pass : kGraphPasses) {
    current = pass.run(current);
    verify_graph(current, pass.name);
  }
  return current;
}

std::vector<std::string> ask_backend(const Graph& graph, const Capabilities& capabilities) {
  std::vector<std::string> why_not;
  why_not.reserve(graph.ops().size());
  for (const Op& op : graph.ops()) why_not.push_back(capabilities.why_unsupported(graph, op));
  return why_not;
}

}  // namespace

std::vector<Partition> partition_graph(const Graph& graph, PartitionPolicy policy, const Capabilities& capabilities) {
  const auto canonical = std::make_shared<const Graph>(run_graph_passes(graph));
  const std::vector<std::string> why_not = ask_backend(*canonical, capabilities);
  std::vector<bool> runnable;
  for (const std::string& why : why_not) runnable.push_back(why.empty());
  // fuse before partition: a partition is a group of ops that share a loop nest, or an op that cannot share one
  std::vector<FusionGroup> groups = fuse(*canonical, runnable, policy == PartitionPolicy::fusion);
  std::vector<Partition> partitions = make_partitions(canonical, std::move(groups), why_not);
  verify_partitions(*canonical, partitions);
  return partitions;
}

}  // namespace lamina
