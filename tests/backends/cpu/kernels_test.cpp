// Generated kernels against the reference backend: every family, over types, shapes and strides.
#include <gtest/gtest.h>

#include "backends/cpu/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;
using Strings = std::vector<std::string>;

DataType statistics_type(DataType src) { return src == f64 ? f64 : f32; }

void expect_one_kernel(const RunResult& result) { EXPECT_EQ(result.kernels_per_partition, std::vector<size_t>{1}); }

class NormKernels : public ::testing::TestWithParam<std::tuple<DataType, Dims>> {};

TEST_P(NormKernels, LayerNormWithStatistics) {
  const auto [dtype, shape] = GetParam();
  GraphBuilder g;
  const auto x = g.input(dtype, shape);
  const auto gamma = g.input(statistics_type(dtype), {shape.back()});
  const auto beta = g.input(statistics_type(dtype), {shape.back()});
  g.multi(OpKind::LayerNorm, {x, gamma, beta}, {}, {dtype, statistics_type(dtype), statistics_type(dtype)});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST_P(NormKernels, LayerNormOverAllAxesButTheFirst) {
  const auto [dtype, shape] = GetParam();
  GraphBuilder g;
  const auto x = g.input(dtype, shape);
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"begin_norm_axis", int64_t{1}}}, {dtype, statistics_type(dtype), statistics_type(dtype)});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST_P(NormKernels, LayerNormBackwardWithBothWeightGradients) {
  const auto [dtype, shape] = GetParam();
  const DataType weights = statistics_type(dtype);
  GraphBuilder g;
  const auto x = g.input(dtype, shape);
  const auto dy = g.input(dtype, shape);
  const auto mean = g.input(weights, Dims(shape.begin(), shape.end() - 1));
  const auto variance = g.input(weights, Dims(shape.begin(), shape.end() - 1));
  const auto gamma = g.input(weights, {shape.back()});
  g.multi(OpKind::LayerNormBackward, {x, dy, mean, variance, gamma}, {}, {dtype, weights, weights});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
}

TEST_P(NormKernels, LayerNormBackwardThatRecomputesStatistics) {
  const auto [dtype, shape] = GetParam();
  GraphBuilder g;
  const auto x = g.input(dtype, shape);
  const auto dy = g.input(dtype, shape);
  const auto gamma = g.input(statistics_type(dtype), {shape.back()});
  g.multi(OpKind::LayerNormBackward, {x, dy, gamma}, {{"use_stats", false}, {"epsilon", 0.1F}}, {dtype});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 16));
}

TEST_P(NormKernels, RmsNormBackward) {
  const auto [dtype, shape] = GetParam();
  GraphBuilder g;
  const auto x = g.input(dtype, shape);
  const auto dy = g.input(dtype, shape);
  const auto gamma = g.input(statistics_type(dtype), {shape.back()});
  g.multi(OpKind::RMSNormBackward, {x, dy, gamma}, {}, {dtype, statistics_type(dtype)});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
}

TEST_P(NormKernels, RmsNormSoftMaxAndLogSoftmax) {
  const auto [dtype, shape] = GetParam();
  for (const OpKind kind : {OpKind::RMSNorm, OpKind::SoftMax, OpKind::LogSoftmax}) {
    GraphBuilder g;
    const auto x = g.input(dtype, shape);
    if (kind == OpKind::RMSNorm) g.op(kind, {x, g.input(statistics_type(dtype), {shape.back()})});
    else g.op(kind, {x}, {{"axis", int64_t{-1}}});
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 8));
  }
}

TEST_P(NormKernels, SoftMaxBackwardAlongTheFirstAxis) {
  const auto [dtype, shape] = GetParam();
  for (const OpKind kind : {OpKind::SoftMaxBackward, OpKind::LogSoftmaxBackward}) {
    GraphBuilder g;
    const auto dy = g.input(dtype, shape);
    const auto y = g.input(dtype, shape);
    g.op(kind, {dy, y}, {{"axis", int64_t{0}}});
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
  }
}

TEST_P(NormKernels, EveryReduction) {
  const auto [dtype, shape] = GetParam();
  for (const OpKind kind : {OpKind::ReduceL1, OpKind::ReduceL2, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin, OpKind::ReduceSum}) {
    for (const bool keep : {false, true}) {
      for (const int64_t axis : {int64_t{0}, int64_t{-1}}) {
        GraphBuilder g;
        const auto x = g.input(dtype, shape);
        g.op(kind, {x}, {{"axes", std::vector<int64_t>{axis}}, {"keep_dims", keep}});
        expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, NormKernels,
                         ::testing::Combine(::testing::Values(f32, bf16, f16, f64),
                                            ::testing::Values(Dims{4, 1}, Dims{3, 7}, Dims{70, 64}, Dims{2, 3, 129}, Dims{5, 4097},
                                                              Dims{131, 100}, Dims{2, 9000})));

class UnaryKernels : public ::testing::TestWithParam<DataType> {};

TEST_P(UnaryKernels, MatchTheReference) {
  const std::vector<std::pair<OpKind, Attributes>> cases = {
      {OpKind::Abs, {}}, {OpKind::Clamp, {{"min", -1.0F}, {"max", 1.0F}}}, {OpKind::Elu, {{"alpha", 0.7F}}}, {OpKind::Exp, {}},
      {OpKind::GELU, {}}, {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}}, {OpKind::HardSigmoid, {{"alpha", 0.2F}, {"beta", 0.5F}}},
      {OpKind::HardSwish, {}}, {OpKind::LeakyReLU, {{"alpha", 0.1F}}}, {OpKind::Mish, {}}, {OpKind::ReLU, {}}, {OpKind::Round, {}},
      {OpKind::Sigmoid, {}}, {OpKind::SoftPlus, {{"beta", 2.0F}}}, {OpKind::Square, {}}, {OpKind::Swish, {{"alpha", 1.5F}}}, {OpKind::Tanh, {}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    g.op(kind, {g.input(GetParam(), {3, 5, 45})}, attributes);
    SCOPED_TRACE(name_of(kind));
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

TEST_P(UnaryKernels, BackwardsMatchTheReference) {
  const std::vector<std::pair<OpKind, Attributes>> cases = {
      {OpKind::AbsBackward, {}}, {OpKind::ClampBackward, {{"min", -1.0F}, {"max", 1.0F}}}, {OpKind::EluBackward, {{"alpha", 0.7F}}},
      {OpKind::EluBackward, {{"alpha", 0.7F}, {"use_dst", false}}}, {OpKind::GELUBackward, {}},
      {OpKind::GELUBackward, {{"mode", std::string("gelu_tanh")}}}, {OpKind::HardSigmoidBackward, {{"alpha", 0.2F}, {"beta", 0.5F}}},
      {OpKind::HardSwishBackward, {}}, {OpKind::MishBackward, {}}, {OpKind::ReLUBackward, {}}, {OpKind::SigmoidBackward, {}},
      {OpKind::SigmoidBackward, {{"use_dst", false}}}, {OpKind::SoftPlusBackward, {}}, {OpKind::TanhBackward, {}},
      {OpKind::TanhBackward, {{"use_dst", false}}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), {2, 150});
    const auto dy = g.input(GetParam(), {2, 150});
    g.op(kind, {x, dy}, attributes);
    SCOPED_TRACE(name_of(kind));
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 8));
  }
}

TEST_P(UnaryKernels, BinariesBroadcast) {
  for (const OpKind kind : {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Maximum, OpKind::Minimum, OpKind::SquaredDifference}) {
    for (const Dims& other : {Dims{3, 4, 33}, Dims{33}, Dims{4, 1}, Dims{3, 1, 1}, Dims{1, 1, 1}}) {
      GraphBuilder g;
      const auto x = g.input(GetParam(), {3, 4, 33});
      const auto y = g.input(GetParam(), other);
      g.op(kind, {x, y});
      expect_one_kernel(expect_cpu_matches_reference(g.finish()));
    }
  }
}

TEST_P(UnaryKernels, StridedAndPermuted) {
  GraphBuilder g;
  const auto x = g.input(GetParam(), {4, 6, 10}, {100, 13, 1});
  const auto y = g.input(GetParam(), {4, 6, 10}, {1, 4, 24});
  const auto sum = g.op(OpKind::Add, {x, y});
  g.op(OpKind::StaticTranspose, {sum}, {{"order", std::vector<int64_t>{2, 0, 1}}});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

INSTANTIATE_TEST_SUITE_P(Types, UnaryKernels, ::testing::Values(f32, bf16, f16, f64));

// r, x -> Add -> LayerNorm -> GELU -> Quantize
TEST(FusedKernels, ResidualNormActivationQuantizeIsOneKernel) {
  GraphBuilder g;
  const auto x = g.input(f32, {37, 200});
  const auto r = g.input(f32, {37, 200});
  const auto sum = g.op(OpKind::Add, {x, r});
  const auto y = g.op(OpKind::LayerNorm, {sum, g.input(f32, {200}), g.input(f32, {200})}, {{"keep_stats", false}});
  const auto z = g.op(OpKind::GELU, {y});
  g.op(OpKind::Quantize, {z}, {{"scales", std::vector<float>{0.05F}}, {"zps", std::vector<int64_t>{10}}}, DataType::u8);
  g.output(sum);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// dy -> ReLUBackward -> LayerNormBackward -> Add
TEST(FusedKernels, ActivationGradientNormGradientAddIsOneKernel) {
  GraphBuilder g;
  const auto y = g.input(f32, {130, 96});
  const auto dy = g.input(f32, {130, 96});
  const auto x = g.input(f32, {130, 96});
  const auto d = g.op(OpKind::ReLUBackward, {y, dy});
  const auto grads = g.multi(OpKind::LayerNormBackward, {x, d, g.input(f32, {130}), g.input(f32, {130}), g.input(f32, {96})}, {}, {f32, f32, f32});
  g.op(OpKind::Add, {grads[0], g.input(f32, {130, 96})});
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), 64));
}

TEST(FusedKernels, GroupNormInBothFormats) {
  for (const auto& [format, shape] : std::vector<std::pair<std::string, Dims>>{{"NCX", {2, 6, 5, 7}}, {"NXC", {2, 5, 7, 6}}}) {
    for (const DataType dtype : {f32, bf16}) {
      GraphBuilder g;
      const auto x = g.input(dtype, shape);
      const Attributes attributes = {{"groups", int64_t{3}}, {"data_format", format}};
      const auto y = g.multi(OpKind::GroupNorm, {x, g.input(f32, {6}), g.input(f32, {6})}, attributes, {dtype, f32, f32});
      g.op(OpKind::ReLU, {y[0]});
      expect_one_kernel(expect_cpu_matches_reference(g.finish()));
    }
  }
}

struct GroupShape {
  std::string format;
  Dims shape;
};

std::vector<GroupShape> group_shapes() {
  return {{"NCX", {2, 6, 5, 7}}, {"NXC", {2, 5, 7, 6}}, {"NCX", {5, 6}}, {"NXC", {130, 6}}, {"NCX", {1, 6, 65}}, {"NXC", {1, 70, 6}}};
}

// The sums per channel cross the groups' rows: they take a walk of their own, unless the batch is all they sum.
TEST(FusedKernels, GroupNormBackwardTakesTwoWalks) {
  for (const auto& [format, shape] : group_shapes()) {
    for (const DataType dtype : {f32, bf16, f64}) {
      for (const bool use_stats : {false, true}) {
        SCOPED_TRACE(join(format, " ", describe(shape), " ", name_of(dtype), " use_stats ", use_stats));
        GraphBuilder g;
        const DataType weights = statistics_type(dtype);
        std::vector<uint64_t> inputs{g.input(dtype, shape), g.input(dtype, shape)};
        if (use_stats) inputs.insert(inputs.end(), {g.input(weights, {shape[0], 3}), g.input(weights, {shape[0], 3})});
        inputs.push_back(g.input(weights, {6}));
        const Attributes attributes{{"groups", int64_t{3}}, {"data_format", format}, {"use_stats", use_stats}, {"epsilon", 0.1F}};
        g.multi(OpKind::GroupNormBackward, inputs, attributes, {dtype, weights, weights});
        EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{2});
      }
    }
  }
}

TEST(FusedKernels, GroupNormBackwardComputesWhatIsAskedFor) {
  for (const auto& [outputs, kernels] : std::vector<std::pair<std::vector<DataType>, size_t>>{
           {{f32}, 1}, {{DataType::undef, f32}, 1}, {{DataType::undef, DataType::undef, f32}, 1}, {{f32, DataType::undef, f32}, 2}}) {
    GraphBuilder g;
    const Attributes attributes{{"groups", int64_t{2}}, {"data_format", std::string("NCX")}};
    const auto x = g.input(f32, {3, 4, 9});
    const auto dy = g.input(f32, {3, 4, 9});
    g.multi(OpKind::GroupNormBackward, {x, dy, g.input(f32, {3, 2}), g.input(f32, {3, 2}), g.input(f32, {4})}, attributes, outputs);
    EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{kernels});
  }
}

// What the second walk reads is made by the first: dy -> ReLUBackward -> GroupNormBackward -> Add
TEST(FusedKernels, GroupNormBackwardBetweenElementwiseOps) {
  GraphBuilder g;
  const Dims shape{2, 6, 5, 7};
  const auto d = g.op(OpKind::ReLUBackward, {g.input(f32, shape), g.input(f32, shape)});
  const Attributes attributes{{"groups", int64_t{3}}, {"data_format", std::string("NCX")}, {"use_stats", false}};
  const auto grads = g.multi(OpKind::GroupNormBackward, {g.input(f32, shape), d, g.input(f32, {6})}, attributes, {f32, f32, f32});
  g.op(OpKind::Add, {grads[0], g.input(f32, shape)});
  EXPECT_EQ(expect_cpu_matches_reference(g.finish(), 64).kernels_per_partition, std::vector<size_t>{2});
}

TEST(FusedKernels, SoftMaxOfMaskedRows) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 50});
  g.multi(OpKind::SoftMax, {x}, {{"axis", int64_t{1}}, {"mode", std::string("inf_as_zero")}}, {f32, f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int i = 0; i < 200; ++i) store_from_double(f32, data.data(), i, i < 100 || i % 3 == 0 ? -INFINITY : i * 0.1);
  expect_cpu_matches_reference(graph, 8, 1, {{graph.tensor(0).id, data}});
}

TEST(FusedKernels, DequantizeSelectAndPerChannelQuantize) {
  GraphBuilder g;
  const auto q = g.input(DataType::s8, {3, 8, 9});
  const auto x = g.op(OpKind::Dequantize, {q}, {{"scales", std::vector<float>(8, 0.5F)}, {"qtype", std::string("per_channel")}}, f32);
  const auto c = g.op(OpKind::GreaterEqual, {x, g.input(f32, {9})}, {}, DataType::boolean);
  const auto s = g.op(OpKind::Select, {c, x, g.input(f32, {})}, {}, f32);
  const std::vector<float> scales = {0.1F, 0.2F, 0.3F, 0.4F, 0.5F, 0.6F, 0.7F, 0.8F};
  g.op(OpKind::Quantize, {s}, {{"scales", scales}, {"qtype", std::string("per_channel")}}, DataType::s8);
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedKernels, ReshapeWithoutCommonDims) {
  for (const bool dense : {true, false}) {
    GraphBuilder g;
    const auto x = dense ? g.input(f32, {6, 4}) : g.input(f32, {6, 4}, {9, 2});
    const auto y = g.op(OpKind::StaticReshape, {x}, {{"shape", std::vector<int64_t>{4, 6}}, {"special_zero", false}});
    if (!dense) {
      g.tensor(y).layout = LayoutType::strided;
      g.tensor(y).shape = Dims{4, 6};
      g.tensor(y).strides = {1, 7};
    }
    EXPECT_EQ(expect_cpu_matches_reference(g.finish()).kernels_per_partition, std::vector<size_t>{dense ? 1U : 2U});
  }
}

// Code is cached by structure: an operand per row and one for all rows are different structures.
TEST(FusedKernels, BroadcastOverRowsIsNotTakenForAValuePerRow) {
  for (const Dims& scale : {Dims{1, 1}, Dims{37, 1}, Dims{1, 20}, Dims{37, 20}}) {
    GraphBuilder g;
    const auto x = g.input(f32, {37, 20}), y = g.input(f32, scale);
    g.op(OpKind::SoftMax, {g.op(OpKind::Multiply, {x, y})}, {{"axis", int64_t{1}}});
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

TEST(FusedKernels, DropoutDrawsTheReferencesNumbers) {
  GraphBuilder g;
  const auto x = g.input(f32, {7, 33});
  g.multi(OpKind::Dropout, {x, g.scalar(DataType::s64), g.scalar(DataType::s64), g.scalar(f32)}, {}, {f32, DataType::u8});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

}  // namespace
}  // namespace lamina::testing
