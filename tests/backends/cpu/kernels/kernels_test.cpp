// Generated kernels against the reference backend: every family, over types, shapes and strides.
#include <gtest/gtest.h>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;

DataType statistics_type(DataType src) { return src == f64 ? f64 : f32; }

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
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"begin_norm_axis", int64_t{1}}},
          {dtype, statistics_type(dtype), statistics_type(dtype)});
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
    if (kind == OpKind::RMSNorm)
      g.op(kind, {x, g.input(statistics_type(dtype), {shape.back()})});
    else
      g.op(kind, {x}, {{"axis", int64_t{-1}}});
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
  for (const OpKind kind :
       {OpKind::ReduceL1, OpKind::ReduceL2, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin, OpKind::ReduceSum}) {
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
                                            ::testing::Values(Dims{4, 1}, Dims{3, 7}, Dims{70, 64}, Dims{2, 3, 129},
                                                              Dims{5, 4097}, Dims{131, 100}, Dims{2, 9000})));

class UnaryKernels : public ::testing::TestWithParam<DataType> {};

TEST_P(UnaryKernels, MatchTheReference) {
  const std::vector<std::pair<OpKind, Attributes>> cases = {{OpKind::Abs, {}},
                                                            {OpKind::Clamp, {{"min", -1.0F}, {"max", 1.0F}}},
                                                            {OpKind::Elu, {{"alpha", 0.7F}}},
                                                            {OpKind::Exp, {}},
                                                            {OpKind::GELU, {}},
                                                            {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}},
                                                            {OpKind::HardSigmoid, {{"alpha", 0.2F}, {"beta", 0.5F}}},
                                                            {OpKind::HardSwish, {}},
                                                            {OpKind::LeakyReLU, {{"alpha", 0.1F}}},
                                                            {OpKind::Mish, {}},
                                                            {OpKind::ReLU, {}},
                                                            {OpKind::Round, {}},
                                                            {OpKind::Sigmoid, {}},
                                                            {OpKind::Sin, {}},
                                                            {OpKind::Cos, {}},
                                                            {OpKind::Log1p, {}},
                                                            {OpKind::Expm1, {}},
                                                            {OpKind::Erfc, {}},
                                                            {OpKind::Sign, {}},
                                                            {OpKind::Trunc, {}},
                                                            {OpKind::SoftPlus, {{"beta", 2.0F}}},
                                                            {OpKind::Square, {}},
                                                            {OpKind::Swish, {{"alpha", 1.5F}}},
                                                            {OpKind::Tanh, {}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    g.op(kind, {g.input(GetParam(), {3, 5, 45})}, attributes);
    SCOPED_TRACE(name_of(kind));
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

TEST_P(UnaryKernels, BackwardsMatchTheReference) {
  const std::vector<std::pair<OpKind, Attributes>> cases = {{OpKind::AbsBackward, {}},
                                                            {OpKind::ClampBackward, {{"min", -1.0F}, {"max", 1.0F}}},
                                                            {OpKind::EluBackward, {{"alpha", 0.7F}}},
                                                            {OpKind::EluBackward, {{"alpha", 0.7F}, {"use_dst", false}}},
                                                            {OpKind::GELUBackward, {}},
                                                            {OpKind::GELUBackward, {{"mode", std::string("gelu_tanh")}}},
                                                            {OpKind::HardSigmoidBackward, {{"alpha", 0.2F}, {"beta", 0.5F}}},
                                                            {OpKind::HardSwishBackward, {}},
                                                            {OpKind::MishBackward, {}},
                                                            {OpKind::ReLUBackward, {}},
                                                            {OpKind::SigmoidBackward, {}},
                                                            {OpKind::SigmoidBackward, {{"use_dst", false}}},
                                                            {OpKind::SoftPlusBackward, {}},
                                                            {OpKind::TanhBackward, {}},
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
  for (const OpKind kind : {OpKind::Add, OpKind::Subtract, OpKind::Multiply, OpKind::Maximum, OpKind::Minimum,
                            OpKind::SquaredDifference, OpKind::Atan2, OpKind::Fmod}) {
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

}  // namespace
}  // namespace lamina::testing
