// Ops whose statistics or tables vary along the channels, and concatenation.
#include <gtest/gtest.h>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;

DataType statistics_type(DataType src) { return src == f64 ? f64 : f32; }

struct Case {
  std::string format;
  Dims shape;
  int64_t channels;
};

class ChannelKernels : public ::testing::TestWithParam<std::tuple<DataType, Case>> {
 protected:
  DataType dtype = std::get<0>(GetParam());
  Case c = std::get<1>(GetParam());
  DataType weights = statistics_type(dtype);
  GraphBuilder g;

  uint64_t data() { return g.input(dtype, c.shape); }
  uint64_t table() { return g.input(weights, {c.channels}); }
  Attributes attributes() const { return {{"epsilon", 0.01F}, {"data_format", c.format}}; }
};

TEST_P(ChannelKernels, BatchNormInference) {
  const auto x = data();
  g.op(OpKind::BatchNormInference, {x, table(), table(), table(), table()}, attributes());
  const bool shares_factors = c.format == "NXC" && c.shape[0] > 100;  // a kernel of its own precomputes them
  EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 16).kernels_per_partition, std::vector<size_t>{shares_factors ? 2U : 1U});
}

TEST_P(ChannelKernels, BatchNormForwardTraining) {
  for (const bool affine : {false, true}) {
    for (const bool momentum : {false, true}) {
      GraphBuilder builder;
      std::vector<uint64_t> inputs{builder.input(dtype, c.shape)};
      for (int i = 0; i < (affine ? 4 : 2); ++i) inputs.push_back(builder.input(weights, {c.channels}));
      Attributes given = attributes();
      if (momentum) given["momentum"] = 0.9F;
      builder.multi(OpKind::BatchNormForwardTraining, inputs, given, {dtype, weights, weights, weights, weights});
      expect_one_kernel(expect_cpu_matches_reference(builder.finish(), 32));
    }
  }
}

TEST_P(ChannelKernels, BatchNormTrainingBackward) {
  const auto x = data(), dy = data();
  g.multi(OpKind::BatchNormTrainingBackward, {x, dy, table(), table(), table()}, attributes(), {dtype, weights, weights});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 256));
}

TEST_P(ChannelKernels, BatchNormTrainingBackwardOfSrcAlone) {
  const auto x = data(), dy = data();
  g.multi(OpKind::BatchNormTrainingBackward, {x, dy, table(), table()}, attributes(), {dtype});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
}

// One pass if the slope varies along the last axis; otherwise its gradient needs a second pass.
TEST_P(ChannelKernels, PReLUBackwardPerChannel) {
  const auto x = data();
  const auto slope = g.input(dtype, {c.channels});
  const auto dy = data();
  g.multi(OpKind::PReLUBackward, {x, slope, dy}, {{"data_format", c.format}}, {dtype, dtype});
  const bool along_last = c.format == "NXC" || c.shape.size() == 2;
  EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 256).kernels_per_partition, std::vector<size_t>{along_last ? 1U : 2U});
}

INSTANTIATE_TEST_SUITE_P(Formats, ChannelKernels,
                         ::testing::Combine(::testing::Values(f32, bf16, f64),
                                            ::testing::Values(Case{"NCX", {2, 6, 5, 7}, 6}, Case{"NXC", {2, 5, 7, 6}, 6},
                                                              Case{"NCX", {3, 70, 65}, 70}, Case{"NXC", {130, 3, 70}, 70},
                                                              Case{"NCX", {9, 4}, 4}, Case{"NXC", {1, 1, 5}, 5})));

TEST(PReLUBackwardKernels, SlopesOfEveryShape) {
  for (const Dims& slope : {Dims{1}, Dims{4, 6, 10}, Dims{1, 6, 1}, Dims{6, 10}, Dims{4, 1, 10}}) {
    SCOPED_TRACE(describe(slope));
    GraphBuilder g;
    const auto x = g.input(f32, {4, 6, 10}), s = g.input(f32, slope), dy = g.input(f32, {4, 6, 10});
    g.multi(OpKind::PReLUBackward, {x, s, dy}, {}, {f32, f32});
    expect_cpu_matches_reference(g.finish(), 64);
  }
}

// x -> BatchNormInference -> ReLU -> Add: tables along the channels do not prevent fusion.
TEST(BatchNormKernels, InferenceFusesWithItsNeighbours) {
  GraphBuilder g;
  const Dims shape{2, 6, 5, 7};
  const std::vector<uint64_t> inputs{g.input(f32, shape), g.input(f32, {6}), g.input(f32, {6}), g.input(f32, {6}),
                                     g.input(f32, {6})};
  const auto y = g.op(OpKind::BatchNormInference, inputs, {{"epsilon", 0.01F}, {"data_format", std::string("NCX")}});
  g.op(OpKind::Add, {g.op(OpKind::ReLU, {y}), g.input(f32, shape)});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 16));
}

TEST(ConcatKernels, JoinAlongEveryAxis) {
  for (const DataType dtype : {f32, bf16, f16, f64, DataType::s8, DataType::u8, DataType::s64}) {
    for (const int64_t axis : {0, 1, 2, -1}) {
      SCOPED_TRACE(join(name_of(dtype), " along ", axis));
      GraphBuilder g;
      std::vector<uint64_t> parts;
      for (const int64_t extent : {3, 0, 1, 20}) {
        Dims shape{4, 5, 6};
        shape[static_cast<size_t>(axis < 0 ? axis + 3 : axis)] = extent;
        parts.push_back(g.input(dtype, shape));
      }
      g.op(OpKind::Concat, parts, {{"axis", axis}});
      EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 0).kernels_per_partition, std::vector<size_t>{4});
    }
  }
}

TEST(ConcatKernels, StridedInputsAndOutputAndOneInputTwice) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 6}, {1, 4}), y = g.input(f32, {4, 3}, {10, 2});
  const auto z = g.op(OpKind::Concat, {x, y, x}, {{"axis", int64_t{1}}});
  g.tensor(z).shape = Dims{4, 15};
  g.tensor(z).strides = {40, 2};
  g.tensor(z).layout = LayoutType::strided;
  expect_cpu_matches_reference(g.finish(), 0);
}

}  // namespace
}  // namespace lamina::testing
