// From a user's graph to partitions, and from a partition to the graph that is compiled.
#include "passes/pipeline.h"

#include "interface/status.h"
#include "passes/extract_subgraph.h"
#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<uint64_t> ids(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::vector<uint64_t> result;
  for (const ValueIndex value : values) result.push_back(graph.tensor(value).id);
  return result;
}

std::vector<LogicalTensor> tensors(const Partition& partition, const std::vector<ValueIndex>& ports) {
  std::vector<LogicalTensor> result;
  for (const ValueIndex value : ports) result.push_back(partition.graph->tensor(value));
  return result;
}

struct Residual {
  GraphBuilder g;
  uint64_t x = g.input(f32, {kUnknownDim, 8}), r = g.input(f32, {kUnknownDim, 8}), gamma = g.input(f32, {8}),
           beta = g.input(f32, {8}), weights = g.input(f32, {8, 8});
  uint64_t sum = g.named("add").op(OpKind::Add, {x, r});
  uint64_t norm = g.named("norm").op(OpKind::LayerNorm, {sum, gamma, beta}, {{"keep_stats", false}});
  uint64_t mm = g.named("mm").op(OpKind::MatMul, {norm, weights});
  uint64_t last = g.named("last").op(OpKind::Add, {mm, sum});
};

TEST(PartitionGraph, PortsAreTheValuesThatCrossTheBorder) {
  Residual model;
  const auto partitions = partition_graph(model.g.finish(), PartitionPolicy::fusion, RunsAll{});
  ASSERT_EQ(picture(partitions), "add norm | mm | last");
  const Graph& graph = *partitions[0].graph;
  EXPECT_THAT(ids(graph, partitions[0].inputs), ElementsAre(model.x, model.r, model.gamma, model.beta));
  EXPECT_THAT(ids(graph, partitions[0].outputs), ElementsAre(model.sum, model.norm));
  EXPECT_THAT(ids(graph, partitions[2].inputs), ElementsAre(model.mm, model.sum));
  EXPECT_EQ(partitions[2].id, 2U);
}

TEST(PartitionGraph, OpsThatDoNotRunAreAloneWithTheReason) {
  Residual model;
  const auto partitions = partition_graph(model.g.finish(), PartitionPolicy::fusion, RefusesKind(OpKind::LayerNorm));
  EXPECT_EQ(picture(partitions), "add | norm | mm | last");
  EXPECT_TRUE(partitions[0].supported);
  EXPECT_FALSE(partitions[1].supported);
  EXPECT_EQ(partitions[1].unsupported_reason, "LayerNorm \"norm\": no kernel for it");
  EXPECT_EQ(partitions[0].reasons[0][1].code, "alone.unsupported");
}

TEST(PartitionGraph, DebugPolicyMakesOnePartitionAnOp) {
  Residual model;
  EXPECT_EQ(picture(partition_graph(model.g.finish(), PartitionPolicy::debug, RunsAll{})), "add | norm | mm | last");
}

TEST(PartitionGraph, AValueThatEndMarksIsAnOutput) {
  GraphBuilder g;
  const auto exp = g.op(OpKind::Exp, {g.input(f32, {4})});
  g.op(OpKind::Abs, {exp});
  g.output(exp);
  const auto partitions = partition_graph(g.finish(), PartitionPolicy::fusion, RunsAll{});
  ASSERT_EQ(partitions.size(), 1U);
  EXPECT_EQ(partitions[0].outputs.size(), 2U);
}

TEST(PartitionGraph, AnEmptyGraphHasNone) {
  GraphBuilder g;
  EXPECT_TRUE(partition_graph(g.finish(), PartitionPolicy::fusion, RunsAll{}).empty());
}

// ---- extract_subgraph

TEST(ExtractSubgraph, GivesInnerValuesTheShapesOfTheGivenTensors) {
  Residual model;
  const auto partition = partition_graph(model.g.finish(), PartitionPolicy::fusion, RunsAll{}).at(0);
  auto inputs = tensors(partition, partition.inputs);
  inputs[0].shape = inputs[1].shape = Dims{16, 8};
  inputs[0].layout = inputs[1].layout = LayoutType::strided;
  inputs[0].strides = {32, 1};
  inputs[1].strides = {8, 1};
  const Subgraph subgraph = extract_subgraph(partition, inputs, tensors(partition, partition.outputs));
  EXPECT_EQ(subgraph.graph.ops().size(), 2U);
  EXPECT_THAT(ids(subgraph.graph, subgraph.inputs), ElementsAre(model.x, model.r, model.gamma, model.beta));
  EXPECT_THAT(ids(subgraph.graph, subgraph.outputs), ElementsAre(model.sum, model.norm));
  for (const Value& value : subgraph.graph.values()) EXPECT_TRUE(value.tensor.has_full_shape() && value.tensor.has_strides());
  EXPECT_EQ(subgraph.graph.tensor(subgraph.inputs[0]).strides, (Dims{32, 1}));
  EXPECT_EQ(subgraph.graph.tensor(subgraph.outputs[0]).shape, (Dims{16, 8}));
}

std::string error_of(const Partition& partition, const std::vector<LogicalTensor>& in, const std::vector<LogicalTensor>& out) {
  try {
    extract_subgraph(partition, in, out);
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(ExtractSubgraph, RefusesWhatDoesNotFit) {
  GraphBuilder g;
  g.op(OpKind::Exp, {g.input(f32, {kUnknownDim, 8})});
  const auto partition = partition_graph(g.finish(), PartitionPolicy::fusion, RunsAll{}).at(0);
  auto in = tensors(partition, partition.inputs), out = tensors(partition, partition.outputs);
  EXPECT_THAT(error_of(partition, in, out), HasSubstr("input 0 is f32[?, 8], allowed is a shape without unknown dims"));
  in[0].shape = Dims{4, 8};
  out[0].shape = Dims{5, 8};
  EXPECT_THAT(error_of(partition, in, out), HasSubstr("[5, 8]"));
  out[0].dtype = bf16;
  EXPECT_THAT(error_of(partition, in, out), HasSubstr("is bf16, allowed is f32"));
}

// LayerNormGrad's statistics [4, 1] must pass the checks of the canonical op again.
TEST(ExtractSubgraph, TakesCanonicalFormsOfOlderOps) {
  GraphBuilder g;
  g.multi(OpKind::LayerNormGrad,
          {g.input(f32, {4, 8}), g.input(f32, {4, 8}), g.input(f32, {4, 1}), g.input(f32, {4, 1}), g.input(f32, {8})},
          {{"output_mask", std::vector<int64_t>{0, 1, 1}}}, {f32, f32});
  const auto partition = partition_graph(g.finish(), PartitionPolicy::fusion, RunsAll{}).at(0);
  const Subgraph subgraph =
      extract_subgraph(partition, tensors(partition, partition.inputs), tensors(partition, partition.outputs));
  EXPECT_EQ(subgraph.graph.ops()[0].kind, OpKind::LayerNormBackward);
  EXPECT_EQ(subgraph.outputs.size(), 2U);
}

}  // namespace
}  // namespace lamina::testing
