// The bytes and the arithmetic of steps, counted by hand.
#include "kernels/step_work.h"

#include <gtest/gtest.h>

#include <string>

#include "backends/backend.h"
#include "compiler/compile.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using testing::GraphBuilder;
constexpr DataType f32 = DataType::f32;

// The only partition of the graph, compiled for the CPU.
std::vector<StepWork> steps_of(GraphBuilder& g) {
  const std::vector<Partition> partitions = partition_graph(g.finish(), PartitionPolicy::fusion, cpu_backend());
  EXPECT_EQ(partitions.size(), 1u);
  return compile_partition(partitions.at(0), cpu_backend())->info().steps;
}

TEST(StepWork, ALayerNormReadsAndWritesEachTensorOnce) {
  // src, dst f32[12, 64]; gamma, beta f32[64]; mean, variance f32[12]
  GraphBuilder g;
  g.multi(OpKind::LayerNorm, {g.input(f32, {12, 64}), g.input(f32, {64}), g.input(f32, {64})}, {}, {f32, f32, f32});
  const auto steps = steps_of(g);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, StepWork::Kind::kernel);
  EXPECT_EQ(steps[0].bytes, 4 * (2 * 12 * 64 + 2 * 64 + 2 * 12));
  // Per element: four for the moments, x - mean, times rstd, times gamma, plus beta. Per row: variance + epsilon, its root, a
  // division.
  EXPECT_GE(steps[0].arithmetic, 12 * 64 * 8);
  EXPECT_LE(steps[0].arithmetic, 12 * 64 * 8 + 12 * 4);
}

TEST(StepWork, AComparisonAndAChoiceAreNoArithmetic) {
  GraphBuilder g;
  const auto x = g.input(f32, {5, 16});
  const auto is_larger = g.op(OpKind::GreaterEqual, {x, g.input(f32, {5, 16})}, {}, DataType::boolean);
  g.op(OpKind::Select, {is_larger, x, g.input(f32, {5, 16})}, {}, f32);
  const auto steps = steps_of(g);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].arithmetic, 0);
  EXPECT_EQ(steps[0].bytes, 4 * 4 * 5 * 16);
}

TEST(StepWork, AProductMultipliesAndAddsAlongItsColumns) {
  // [6, 16] x [16, 32]
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(f32, {6, 16}), g.input(f32, {16, 32})});
  const auto steps = steps_of(g);
  ASSERT_EQ(steps.size(), 1u);
  EXPECT_EQ(steps[0].kind, StepWork::Kind::library);
  EXPECT_EQ(steps[0].arithmetic, 2 * 6 * 16 * 32);
  EXPECT_EQ(steps[0].bytes, 4 * (6 * 16 + 16 * 32 + 6 * 32));
  EXPECT_EQ(steps[0].name.rfind("MatMul", 0), 0u) << steps[0].name;
}

TEST(StepWork, AProductOfATransposedFactorHasItsColumnsFirst) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(f32, {16, 6}), g.input(f32, {16, 32})}, {{"transpose_a", true}});
  EXPECT_EQ(steps_of(g).at(0).arithmetic, 2 * 6 * 16 * 32);
}

TEST(StepWork, ARowOfAGroupedProductUsesOneMatrix) {
  // [6, 16] x [3, 16, 32]
  GraphBuilder g;
  g.op(OpKind::GroupedMatMul, {g.input(f32, {6, 16}), g.input(f32, {3, 16, 32}), g.input(DataType::s32, {3})});
  EXPECT_EQ(steps_of(g).at(0).arithmetic, 2 * 6 * 16 * 32);
}

TEST(StepWork, AConvolutionUsesEachWeightAtEachPosition) {
  // src [2, 8, 10, 10], weights [12, 4, 3, 3] in 2 groups, dst [2, 12, 8, 8]
  const auto conv = [](OpKind kind, const Dims& first, const std::string& format) {
    GraphBuilder g;
    g.op(kind, {g.input(f32, first), g.input(f32, {12, 4, 3, 3})},
         {{"strides", std::vector<int64_t>{1, 1}},
          {"pads_begin", std::vector<int64_t>{0, 0}},
          {"pads_end", std::vector<int64_t>{0, 0}},
          {"dilations", std::vector<int64_t>{1, 1}},
          {"groups", int64_t{2}},
          {"data_format", std::string("NCX")},
          {"weights_format", format}});
    return steps_of(g).at(0).arithmetic;
  };
  EXPECT_EQ(conv(OpKind::Convolution, {2, 8, 10, 10}, "OIX"), 2.0 * 2 * 12 * 8 * 8 * 4 * 3 * 3);
  // src [2, 12, 8, 8], weights [12, 4, 3, 3], dst [2, 8, 10, 10]
  EXPECT_EQ(conv(OpKind::ConvTranspose, {2, 12, 8, 8}, "IOX"), 2.0 * 2 * 12 * 8 * 8 * 4 * 3 * 3);
}

TEST(StepWork, ATiledChainHasTheWorkOfAllItsTiles) {
  // MatMul -> GELU -> MatMul over 4096 rows, as one chain or as steps
  GraphBuilder g;
  const auto hidden = g.op(OpKind::GELU, {g.op(OpKind::MatMul, {g.input(f32, {4096, 64}), g.input(f32, {64, 256})})});
  g.op(OpKind::MatMul, {hidden, g.input(f32, {256, 64})});
  double arithmetic = 0;
  for (const StepWork& step : steps_of(g)) arithmetic += step.arithmetic;
  const double products = 2.0 * 2 * 4096 * 64 * 256;
  EXPECT_GE(arithmetic, products);
  EXPECT_LE(arithmetic, products + 8.0 * 4096 * 256);
}

}  // namespace
}  // namespace lamina::compiler
