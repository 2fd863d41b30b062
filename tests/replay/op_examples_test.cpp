// The dumps on the pages of docs/ops run. tests/python/op_pages_test.py runs the examples in Python.
#include "lamina/op_examples.h"

#include <gtest/gtest.h>

#include <string>

#include "driver_process.h"
#include "interface/json/json.h"
#include "lamina/op_pages.h"
#include "support/files.h"

namespace lamina::driver {
namespace {

// The block of a page between ```json and ```.
std::string dump_of(const std::string& page) {
  const size_t begin = page.find("```json\n");
  if (begin == std::string::npos) return "";
  return page.substr(begin + 8, page.find("```", begin + 8) - begin - 8);
}

TEST(OpExamples, AreOnEveryPageWhoseOpAnEngineRuns) {
  for (const OpKind kind : all_op_kinds())
    EXPECT_EQ(!dump_of(lamina::testing::text_of(lamina::testing::kTree / "docs" / "ops" / (std::string(name_of(kind)) + ".md")))
                   .empty(),
              has_example(schema_of(kind)))
        << name_of(kind);
}

TEST(OpExamples, AreGraphsOfThatOp) {
  for (const OpKind kind : all_op_kinds()) {
    const std::string dump = dump_of(op_page(schema_of(kind)));
    if (dump.empty()) continue;
    Graph graph = read_graph_json(dump, std::string(name_of(kind)));
    graph.finalize();
    ASSERT_EQ(graph.ops().size(), 1U) << name_of(kind);
    EXPECT_EQ(graph.op(0).kind, kind);
  }
}

TEST(OpExamples, AreComputedRight) {
  const testing::Workspace w("op_examples");
  std::string files;
  for (const OpKind kind : all_op_kinds()) {
    const std::string dump = dump_of(op_page(schema_of(kind)));
    if (dump.empty()) continue;
    files += " " + w.write(std::string(name_of(kind)) + ".json", dump);
  }
  const testing::Outcome outcome = w.run("replay --engine cpu --check" + files);
  EXPECT_EQ(outcome.code, 0) << outcome.out << outcome.err;
}

}  // namespace
}  // namespace lamina::driver
