// Invariants of raising: ids, names, order and unrelated values; and its effect on what users see.
#include "interface/json/json.h"
#include "raise_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

V norm(V x) {
  const V d = x - mean(x);
  return d / sqrt(mean(square(d)) + 1e-5);
}

TEST(RaiseDecomposed, ALongModelIsRaisedEverywhere) {
  Writer w;
  V x = w.x();
  std::string kinds;
  for (int i = 0; i < 20; ++i) {
    const V a = norm(x), b = norm(x);  // two norms of one x, computed separately
    x = x + exp(a) * b;
    kinds += "LayerNorm LayerNorm Exp Multiply Add ";
  }
  kinds.pop_back();
  expect_raised(w, kinds, 1e-5);
}

TEST(RaiseDecomposed, TheOpHasTheIdAndNameOfTheLastOne) {
  Writer w;
  const V d = w.x() - mean(w.x());
  const V s = sqrt(mean(square(d)) + 1e-5);
  w.g.named("out");
  d / s;
  const Graph graph = raised(w.g.finish());
  const Op& op = graph.ops().at(0);
  EXPECT_EQ(op.id, 6U);
  EXPECT_EQ(op.name, "out");
  std::vector<uint64_t> origins;
  for (const Origin& origin : op.origins) origins.push_back(origin.id);
  EXPECT_THAT(origins, ElementsAre(0, 1, 2, 3, 4, 5));
  EXPECT_EQ(describe(op.origins[0]), "ReduceMean \"op0\"");
}

TEST(RaiseDecomposed, AGraphWithoutAnythingToRaiseIsUnchanged) {
  Writer w;
  exp(w.x() * w.x()) + square(w.x()) / w.number(2);
  const Graph graph = w.g.finish();
  EXPECT_FALSE(raise_decomposed(graph));
}

TEST(RaiseDecomposed, PartitionsCountEveryOpOfTheUserOnce) {
  Writer w;
  const V y = norm(w.op(OpKind::Reorder, {w.x()}));  // 1 + 6 ops
  w.op(OpKind::MatMul, {y, w.input({8, 8})});
  const Graph graph = w.g.finish();
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, RunsAll{});
  ASSERT_EQ(partitions.size(), 2U);
  EXPECT_THAT(op_ids(partitions[0]), UnorderedElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(op_ids(partitions[1]), ElementsAre(8));
  EXPECT_EQ(partitions[0].inputs.size(), 1U);  // epsilon is a constant of the compiled code
}

TEST(RaiseDecomposed, TheReasonNamesThePatternAndTheOps) {
  Writer w;
  w.g.named("gate");
  const V s = sigmoid(w.x());
  w.g.named("swish");
  w.x() * s;
  const auto partitions = partition_graph(w.g.finish(), PartitionPolicy::fusion, RunsAll{});
  const Reason& reason = partitions.at(0).reasons.at(0).at(0);
  EXPECT_EQ(reason.code, "raised");
  EXPECT_EQ(reason.text, "Swish \"swish\" was found by pattern swish; it also replaces Sigmoid \"gate\" (op 0)");
}

TEST(RaiseDecomposed, DroppedOpsAreNamedWithTheirReader) {
  GraphBuilder g;
  const auto same = g.named("same").op(OpKind::Reorder, {g.input(f32, {4})});
  g.named("again").op(OpKind::Abs, {g.named("same too").op(OpKind::Reorder, {same})});
  const auto partitions = partition_graph(g.finish(), PartitionPolicy::fusion, RunsAll{});
  EXPECT_THAT(op_ids(partitions.at(0)), UnorderedElementsAre(0, 1, 2));
  const Reason& reason = partitions[0].reasons.at(0).at(0);
  EXPECT_EQ(reason.code, "dropped");
  EXPECT_THAT(reason.text, HasSubstr("Reorder \"same\" (op 0), Reorder \"same too\" (op 1)"));
}

TEST(RaiseDecomposed, PolicyDebugShowsTheOpsAsTheyAre) {
  Writer w;
  norm(w.x());
  EXPECT_EQ(partition_graph(w.g.finish(), PartitionPolicy::debug, RunsAll{}).size(), 7U);
}

TEST(RaiseDecomposed, ReadsNumbersFromADump) {
  Writer w;
  norm(w.x());
  const Graph graph = read_graph_json(write_graph_json(w.g.finish()), "it.json");
  Graph finalized = graph;
  finalized.finalize();
  EXPECT_EQ(kinds_of(raised(finalized)), "LayerNorm");
}

TEST(RaiseDecomposed, TheRaisedGraphIsItsOwnFixedPoint) {
  Writer w;
  norm(w.x()) * w.gamma() + w.beta();
  const Graph graph = raised(w.g.finish());
  EXPECT_FALSE(raise_decomposed(graph));
}

}  // namespace
}  // namespace lamina::testing
