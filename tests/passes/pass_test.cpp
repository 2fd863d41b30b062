// The pass runner: what it reports, and which broken graphs it rejects.
#include "passes/pass.h"

#include "interface/status.h"
#include "passes/core/graph_editor.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

std::optional<Graph> keep(const Graph&) { return std::nullopt; }
std::optional<Graph> drop_last(const Graph& graph) {
  GraphEditor editor(graph);
  editor.remove(graph.ops().size() - 1);
  return editor.finish();
}
// Makes an op read a value that a later op computes.
std::optional<Graph> break_order(const Graph& graph) {
  GraphEditor editor(graph);
  editor.op(0).inputs[0] = graph.ops().back().outputs[0];
  return editor.finish();
}

Graph three_ops() {
  GraphBuilder g;
  g.op(OpKind::Exp, {g.op(OpKind::Abs, {g.op(OpKind::ReLU, {g.input(f32, {4})})})});
  return g.finish();
}

TEST(RunPasses, TellsOfEveryPassInOrder) {
  const GraphPass passes[] = {{"keep", keep}, {"drop", drop_last}, {"keep again", keep}};
  std::vector<std::string> told;
  const Graph result = run_passes(three_ops(), passes, [&](const PassReport& report) {
    EXPECT_GE(report.milliseconds, 0);
    told.push_back(
        join(report.position, ' ', report.name, report.changed ? " changed, " : " kept, ", report.graph.ops().size()));
  });
  EXPECT_THAT(told, ::testing::ElementsAre("0 keep kept, 3", "1 drop changed, 2", "2 keep again kept, 2"));
  EXPECT_EQ(result.ops().size(), 2U);
}

TEST(RunPasses, WithoutPassesTheGraphIsItself) { EXPECT_EQ(run_passes(three_ops(), {}, nullptr).ops().size(), 3U); }

TEST(RunPasses, NamesThePassThatLeavesABrokenGraph) {
  const GraphPass passes[] = {{"keep", keep}, {"break_order", break_order}};
  try {
    run_passes(three_ops(), passes, nullptr);
    FAIL() << "the broken graph went through";
  } catch (const Error& error) {
    EXPECT_EQ(error.status(), Status::runtime_error);
    EXPECT_THAT(error.what(), HasSubstr("after break_order"));
  }
}

}  // namespace
}  // namespace lamina::testing
