// Explanations of partitions: kernels by op, tiles, and reasons for missing code.
#include "compiler/explain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using lamina::testing::GraphBuilder;
using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr DataType f32 = DataType::f32;

ExplainedGraph explained(const Graph& graph, PartitionPolicy policy = PartitionPolicy::fusion, bool compile = true) {
  const std::vector<Partition> partitions = partition_graph(graph, policy, cpu_backend());
  return explain(partitions, {}, cpu_backend(), {.compile = compile});
}

std::string kernel_of(const ExplainedGraph& graph, const std::string& name) {
  for (const ExplainedOp& op : graph.ops)
    if (op.name == name)
      return op.kernels.size() == 1 ? graph.partitions[op.partition].kernels[op.kernels.front()].name : "not one";
  return "no such op";
}

// scores [8, 64, 64] = q k', probs = SoftMax(scores), probs v
Graph attention() {
  GraphBuilder g;
  const auto q = g.input(f32, {8, 64, 16}), k = g.input(f32, {8, 16, 64}), v = g.input(f32, {8, 64, 16});
  const auto scores = g.named("scores").op(OpKind::MatMul, {q, k, kNoTensor});
  const auto probs = g.named("probs").multi(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}}, {f32, DataType::undef}).front();
  g.named("mixed").op(OpKind::MatMul, {probs, v, kNoTensor});
  return g.finish();
}

TEST(Explain, TellsWhichKernelComputesAnOpOfATiledChain) {
  const ExplainedGraph graph = explained(attention());
  ASSERT_EQ(graph.partitions.size(), 1u);
  ASSERT_FALSE(graph.partitions.front().tiles.empty());
  EXPECT_THAT(graph.partitions.front().tiles.front().text, StartsWith("tiled: "));
  EXPECT_EQ(graph.partitions.front().tiles.front().ops, graph.partitions.front().ops);
  EXPECT_THAT(kernel_of(graph, "probs"), HasSubstr("softmax"));
  EXPECT_THAT(kernel_of(graph, "scores"), HasSubstr("product"));
  EXPECT_THAT(kernel_of(graph, "mixed"), HasSubstr("product"));
}

// A product whose rows are the columns of the scores: each tile of the scores' rows adds to the whole product.
TEST(Explain, TellsWhatTilesAddTo) {
  GraphBuilder g;
  const auto q = g.input(f32, {2, 300, 32}), k = g.input(f32, {2, 700, 32}), diff = g.input(f32, {2, 300, 32});
  const auto scores = g.op(OpKind::MatMul, {q, k, kNoTensor}, {{"transpose_b", true}});
  const auto weights = g.op(OpKind::Exp, {g.op(OpKind::Clamp, {scores}, {{"min", -2.0f}, {"max", 2.0f}})});
  g.named("dv").op(OpKind::MatMul, {weights, diff, kNoTensor}, {{"transpose_a", true}});
  g.named("dq").op(OpKind::MatMul, {weights, k, kNoTensor});
  const ExplainedGraph graph = explained(g.finish());
  ASSERT_EQ(graph.partitions.size(), 1u);
  std::string told;
  for (const auto& tiles : graph.partitions.front().tiles) told += tiles.sums + "\n";
  EXPECT_THAT(told, HasSubstr("summed over tiles:"));
  EXPECT_THAT(told, HasSubstr("dv"));
  EXPECT_THAT(told, HasSubstr("(rows)"));
}

TEST(Explain, JoinsOpsByPositionsInTheOrderOfPartitions) {
  const ExplainedGraph graph = explained(attention(), PartitionPolicy::debug, false);
  ASSERT_EQ(graph.partitions.size(), 3u);
  EXPECT_FALSE(graph.compiled);
  EXPECT_TRUE(graph.partitions.front().kernels.empty());
  for (size_t i = 0; i < 3; ++i) EXPECT_EQ(graph.ops[i].partition, i);
  const ExplainedTensor& scores = graph.tensors[static_cast<size_t>(graph.ops[0].outputs[0].tensor)];
  EXPECT_EQ(scores.producer, 0);
  EXPECT_EQ(scores.consumers, std::vector<size_t>{1});
  EXPECT_FALSE(scores.is_output);
  EXPECT_TRUE(graph.tensors[static_cast<size_t>(graph.ops[2].outputs[0].tensor)].is_output);
  EXPECT_EQ(graph.ops[0].inputs[0].name, "src");
}

TEST(Explain, ATensorThatOthersReadLeavesThePartitionsThatAreTold) {
  std::vector<Partition> partitions = partition_graph(attention(), PartitionPolicy::debug, cpu_backend());
  partitions.pop_back();
  const ExplainedGraph graph = explain(partitions, {}, cpu_backend(), {.compile = false});
  EXPECT_TRUE(graph.tensors[static_cast<size_t>(graph.ops[1].outputs[0].tensor)].is_output);
}

TEST(Explain, SaysWhyThereIsNoCode) {
  GraphBuilder g;
  const auto positive = g.op(OpKind::Abs, {g.input(f32, {kUnknownDim, 8})});
  g.named("foreign").op(OpKind::Wildcard, {positive});
  const ExplainedGraph graph = explained(g.finish());
  ASSERT_EQ(graph.partitions.size(), 2u);
  EXPECT_TRUE(graph.partitions[0].supported);
  EXPECT_THAT(graph.partitions[0].problem, HasSubstr("it cannot be compiled: "));
  EXPECT_FALSE(graph.partitions[1].supported);
  EXPECT_THAT(graph.partitions[1].problem, HasSubstr("foreign"));
}

}  // namespace
}  // namespace lamina::compiler
