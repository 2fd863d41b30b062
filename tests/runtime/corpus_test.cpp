// Every dump of oneDNN's corpus, if it exists beside the repository, that can be exported: the runtime gives the bits of the
// compiler's library where that has the same primitives. Others are refused with a reason.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "interface/status.h"
#include "lamina/load.h"
#include "runtime/exported_graph.h"
#include "support/files.h"

namespace lamina::testing {
namespace {

// Larger graphs would take too long for a test.
constexpr int64_t kMaxElements = 4'000'000;

int64_t element_count(const Graph& graph) {
  int64_t count = 0;
  for (const Value& value : graph.values())
    if (value.tensor.has_full_shape()) count += value.tensor.element_count();
  return count;
}

TEST(Corpus, GivesTheBitsOfTheLibraryOrAReason) {
  int exported = 0, refused = 0, large = 0, equal_to_default = 0;
  for (const std::filesystem::path& file : dumps_below(kOneDnnDumps)) {
    SCOPED_TRACE(file);
    try {
      Graph graph = driver::load_graph(file.string(), {});
      if (element_count(graph) > kMaxElements) {
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
