// Every dump of oneDNN's corpus, if it exists beside the repository, can be exported unless lamina cannot run it without
// oneDNN: the runtime gives the bits of the compiler's library with the same primitives.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include "backends/exported_model.h"
#include "compiler/compile.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "passes/pipeline.h"
#include "runtime/exported_graph.h"
#include "support/files.h"
#include "support/small_graphs.h"

namespace lamina::testing {
namespace {

// Why the same primitives in this process cannot run the graph; "" if they can.
std::string why_not_here(const Graph& graph) {
  try {
    for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, *backend_like_exported()))
      compiler::compile_partition(partition, *backend_like_exported());
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

void exported_file(const Graph& graph) { exported({&graph, 1}, {.isas = {cpu_isas_here().front()}}); }

// Graphs with ops of unknown kind are not of the corpus of exported models.
bool has_unknown_ops(const Graph& graph) {
  const auto& ops = graph.ops();
  return std::any_of(ops.begin(), ops.end(), [](const Op& op) { return op.kind == OpKind::Wildcard; });
}

TEST(Corpus, GivesTheBitsOfTheLibrary) {
  int exported = 0, refused = 0, large = 0, equal_to_default = 0;
  for (const std::filesystem::path& file : dumps_below(kOneDnnDumps)) {
    SCOPED_TRACE(file);
    const Graph graph = driver::load_graph(file.string(), {});
    try {
      if (!is_small(graph)) {  // written only
        exported_file(graph);
        ++large;
        continue;
      }
      ExportedGraph model(graph);
      ++exported;
      if (model.difference({2}).empty()) {
        ++equal_to_default;
        continue;
      }
      model.compare_with(*backend_like_exported());
      EXPECT_EQ(model.difference({2}), "");
    } catch (const Error& error) {
      ++refused;
      EXPECT_TRUE(has_unknown_ops(graph) || !why_not_here(graph).empty()) << error.what();
    }
  }
  GTEST_LOG_(INFO) << exported << " dumps exported, " << equal_to_default << " with the bits of the default backend, "
                   << refused << " refused, " << large << " too large to run";
}

}  // namespace
}  // namespace lamina::testing
