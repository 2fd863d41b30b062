// Replays and checks every dump of oneDNN's corpus, if it exists beside the repository, whose ops the CPU backend supports.
#include <gtest/gtest.h>

#include <algorithm>

#include "interface/json/json.h"
#include "interface/status.h"
#include "lamina/load.h"
#include "lamina/replay.h"
#include "support/files.h"
#include "support/small_graphs.h"

namespace lamina::driver {
namespace {

namespace fs = std::filesystem;
using testing::dumps_below;
using testing::is_small;
using testing::kOneDnnDumps;

bool runs_on(const Backend& backend, const Graph& graph) {
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, backend);
  return std::all_of(partitions.begin(), partitions.end(), [](const Partition& partition) { return partition.supported; });
}

// Replays and checks every dump that `backend` supports and that is small enough, and counts the others. Unsupported ops must
// have a reason.
int replay_corpus(const Backend& backend, const char* engine) {
  int replayed = 0, large = 0, unsupported = 0;
  for (const fs::path& file : dumps_below(kOneDnnDumps)) {
    SCOPED_TRACE(file);
    Graph graph;
    try {
      graph = load_graph(file.string(), {});
    } catch (const Error& error) {
      GTEST_LOG_(INFO) << "refused: " << error.what();
      continue;
    }
    if (!runs_on(backend, graph)) {
      ++unsupported;
    } else if (!is_small(graph)) {
      ++large;
    } else {
      ReplayOptions options;
      options.files = {file.string()};
      options.engine = engine;
      options.check = true;
      EXPECT_EQ(replay(options), 0);
      ++replayed;
    }
  }
  GTEST_LOG_(INFO) << replayed << " dumps replayed, " << unsupported << " hold an op that the " << backend.name()
                   << " backend does not run, " << large << " are too large for a test";
  EXPECT_GT(replayed, 0);
  return unsupported;
}

TEST(Corpus, EveryDumpThatTheCpuRunsIsRight) {
  if (!fs::exists(kOneDnnDumps)) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  EXPECT_EQ(replay_corpus(cpu_backend(), "cpu"), 0);
}

TEST(Corpus, EveryDumpThatAGpuRunsIsRight) {
  if (!fs::exists(kOneDnnDumps)) GTEST_SKIP() << "the folder shared/graphs/onednn is not beside the project";
  try {
    replay_corpus(backend_for("gpu", ""), "gpu");
  } catch (const Error& error) {
    if (error.status() != Status::unimplemented) throw;
    GTEST_SKIP() << error.what();
  }
}

}  // namespace
}  // namespace lamina::driver
