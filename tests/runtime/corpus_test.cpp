// Every dump of oneDNN's corpus, if it exists beside the repository, that can be exported: the runtime gives the bits of the
// compiler's library where that has the same primitives. Others are refused with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interface/status.h"
#include "lamina/load.h"
#include "runtime/exported_graph.h"
#include "support/files.h"
#include "support/small_graphs.h"

namespace lamina::testing {
namespace {

TEST(Corpus, GivesTheBitsOfTheLibraryOrAReason) {
  int exported = 0, refused = 0, large = 0, equal_to_default = 0;
  for (const std::filesystem::path& file : dumps_below(kOneDnnDumps)) {
    SCOPED_TRACE(file);
    try {
      Graph graph = driver::load_graph(file.string(), {});
      if (!is_small(graph)) {
        ++large;
        continue;
      }
      ExportedGraph model(std::move(graph));
      ++exported;
      if (model.difference({2}).empty()) {
        ++equal_to_default;
        continue;
      }
      model.compare_with(*backend_like_exported());
      EXPECT_EQ(model.difference({2}), "");
    } catch (const Error& error) {
      ++refused;
      EXPECT_THAT(error.what(), ::testing::Not(::testing::HasSubstr("bug in lamina")));
    }
  }
  GTEST_LOG_(INFO) << exported << " dumps exported, " << equal_to_default << " with the bits of the default backend, "
                   << refused << " refused, " << large << " too large";
}

}  // namespace
}  // namespace lamina::testing
