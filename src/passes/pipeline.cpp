#include "passes/pipeline.h"

#include "passes/canonicalize.h"
#include "passes/fusion/fuse.h"
#include "passes/join_groups.h"
#include "passes/nest_concat.h"
#include "passes/partition.h"
#include "passes/raise_decomposed.h"
#include "passes/repeat_dequantize.h"
#include "passes/sink_dequantize.h"
#include "passes/sink_quantize.h"
#include "passes/verify_graph.h"

namespace lamina {
namespace {

// The passes in execution order. Passes after canonicalize only see canonical graphs.
constexpr GraphPass kGraphPasses[] = {
    {"canonicalize", canonicalize},            // first: one form of every op, so that later passes do not handle older ones
    {"raise_decomposed", raise_decomposed},    // before grouping: a norm in small ops would become several loop nests
    {"sink_quantize", sink_quantize},          // before grouping: parts of a concatenation are quantised where they are made
    {"sink_dequantize", sink_dequantize},      // before grouping: a window reads integers
    {"nest_concat", nest_concat},              // after sink_quantize, which needs concatenations of numbers as they are
    {"repeat_dequantize", repeat_dequantize},  // before grouping: a product takes integers if it is the only reader of a factor
};
// Policy debug keeps every op of the user.
constexpr size_t kDebugPasses = 1;

std::vector<std::string> ask_backend(const Graph& graph, const Capabilities& capabilities) {
  std::vector<std::string> why_not;
  why_not.reserve(graph.ops().size());
  for (const Op& op : graph.ops()) why_not.push_back(capabilities.why_unsupported(graph, op));
  return why_not;
}

}  // namespace

std::vector<Partition> partition_graph(const Graph& graph, PartitionPolicy policy, const Capabilities& capabilities,
                                       const PassObserver& observer) {
  const bool fusing = policy == PartitionPolicy::fusion;
  const std::span<const GraphPass> passes = std::span(kGraphPasses).first(fusing ? std::size(kGraphPasses) : kDebugPasses);
  const auto canonical = std::make_shared<const Graph>(run_passes(graph, passes, observer));
  const std::vector<std::string> why_not = ask_backend(*canonical, capabilities);
  std::vector<bool> runnable;
  for (const std::string& why : why_not) runnable.push_back(why.empty());
  // Fuse before partitioning: a partition is a group of ops that share a loop nest, or an op that cannot share one.
  std::vector<FusionGroup> groups = fuse(*canonical, runnable, fusing, capabilities.library());
  // Join groups around library ops: a plan then runs them in tiles, or at least without returning to the caller in between.
  if (fusing && capabilities.runs_several_groups()) groups = join_around_library_ops(*canonical, std::move(groups));
  std::vector<Partition> partitions = make_partitions(canonical, std::move(groups), why_not);
  verify_partitions(*canonical, partitions);
  return partitions;
}

}  // namespace lamina
