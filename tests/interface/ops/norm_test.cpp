#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "support/op_builder.h"
#include "support/valid_op.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;

constexpr DataType f32 = DataType::f32;
constexpr DataType bf16 = DataType::bf16;
constexpr DataType f16 = DataType::f16;
constexpr DataType f64 = DataType::f64;

// src [2, 3, 8]; all other shapes follow from begin_norm_axis.
OpBuilder layer_norm(int begin_norm_axis = -1, Dims affine = {8}) {
  return an_op(OpKind::LayerNorm)
      .named("ln1")
      .attr("begin_norm_axis", begin_norm_axis)
      .input("src", f32, Dims{2, 3, 8})
      .input("gamma", f32, affine)
      .input("beta", f32, affine)
      .output("dst", f32)
      .output("mean", f32)
      .output("variance", f32);
}

TEST(LayerNormSchema, StatsKeepTheDimsBeforeBeginNormAxis) {
  EXPECT_EQ(shapes_of(layer_norm()), (Shapes{{"dst", {2, 3, 8}}, {"mean", {2, 3}}, {"variance", {2, 3}}}));
  EXPECT_EQ(shapes_of(layer_norm(1, {3, 8})), (Shapes{{"dst", {2, 3, 8}}, {"mean", {2}}, {"variance", {2}}}));
  EXPECT_EQ(shapes_of(layer_norm(0, {2, 3, 8})), (Shapes{{"dst", {2, 3, 8}}, {"mean", {}}, {"variance", {}}}));
}

TEST(LayerNormSchema, AffineMayBeFlatOverSeveralAxes) {
  EXPECT_EQ(error_of(layer_norm(-2, {24})), "");
  EXPECT_EQ(error_of(layer_norm(-2, {8})),
            "LayerNorm \"ln1\": input gamma has shape [8], allowed is [3, 8], the normalised axes of the data");
}

TEST(LayerNormSchema, UnknownDimsGoThrough) {
  auto op = layer_norm().without_input("src").input("src", f32, Dims{kUnknownDim, 3, 8});
  EXPECT_EQ(shapes_of(op).at("mean"), (Dims{kUnknownDim, 3}));
  op.without_input("src").input("src", f32, Dims{2, 3, kUnknownDim});
  EXPECT_EQ(error_of(op), "");
}

TEST(LayerNormSchema, BeginNormAxisIsInRange) {
  EXPECT_EQ(error_of(layer_norm(5)), "LayerNorm \"ln1\": attribute begin_norm_axis is 5, allowed is -3..2");
  EXPECT_EQ(error_of(layer_norm(-4)), "LayerNorm \"ln1\": attribute begin_norm_axis is -4, allowed is -3..2");
  EXPECT_EQ(error_of(layer_norm(3)), "LayerNorm \"ln1\": attribute begin_norm_axis is 3, allowed is -3..2");
  EXPECT_EQ(error_of(layer_norm(-3, {2, 3, 8})), "");
}

TEST(LayerNormSchema, AScalarHasNoAxisToNormalise) {
  EXPECT_THAT(error_of(layer_norm().without_input("src").input("src", f32, Dims{})), HasSubstr("rank 0 has no axis"));
}

TEST(LayerNormSchema, EpsilonIsPositiveAndFinite) {
  for (const double epsilon : {0.0, -1.0, std::nan(""), std::numeric_limits<double>::infinity()})
    EXPECT_THAT(error_of(layer_norm().attr("epsilon", epsilon)), HasSubstr(", allowed is a positive finite number"));
  EXPECT_EQ(error_of(layer_norm().attr("epsilon", 0.0)),
            "LayerNorm \"ln1\": attribute epsilon is 0, allowed is a positive finite number");
  EXPECT_EQ(error_of(layer_norm().attr("epsilon", 1e-12)), "");
}

TEST(LayerNormSchema, GammaAndBetaFollowUseAffine) {
  EXPECT_EQ(
      error_of(layer_norm().without_input("gamma").without_input("beta")),
      "LayerNorm \"ln1\": 1 inputs are given, but input gamma (port 1) is missing: it is required because use_affine is true");
  EXPECT_EQ(
      error_of(layer_norm().without_input("beta")),
      "LayerNorm \"ln1\": 2 inputs are given, but input beta (port 2) is missing: it is required because use_affine is true");
  EXPECT_EQ(error_of(layer_norm().attr("use_affine", false)),
            "LayerNorm \"ln1\": 3 inputs are given, allowed is at most 1: src; gamma is absent because use_affine is false; "
            "beta is absent because use_affine is false; mean is absent because use_stats is false; "
            "variance is absent because use_stats is false");
  EXPECT_EQ(error_of(layer_norm().without_input("gamma").without_input("beta").attr("use_affine", false)), "");
}

TEST(LayerNormSchema, StatisticsOutputsFollowKeepStats) {
  EXPECT_EQ(
      error_of(layer_norm().without_output("variance")),
      "LayerNorm \"ln1\": 2 outputs are given, but output variance (port 2) is missing: it is required because keep_stats is "
      "true and use_stats is false");
  EXPECT_THAT(error_of(layer_norm().attr("keep_stats", false)), HasSubstr("3 outputs are given, allowed is at most 1: dst"));
  EXPECT_EQ(error_of(layer_norm().attr("keep_stats", false).without_output("mean").without_output("variance")), "");
}

TEST(LayerNormSchema, GivenStatisticsAreInputsAndNoOutputs) {
  OpBuilder op(OpKind::LayerNorm);
  op.attr("use_stats", true).input("src", f32, Dims{2, 8}).input("gamma", f32, Dims{8}).input("beta", f32, Dims{8});
  op.input("mean", f32, Dims{2}).input("variance", f32, Dims{2}).output("dst", f32);
  EXPECT_EQ(shapes_of(op), (Shapes{{"dst", {2, 8}}}));
  EXPECT_THAT(error_of(OpBuilder(op).without_input("variance")), HasSubstr("input variance (port 4) is missing"));
  EXPECT_THAT(error_of(OpBuilder(op).output("mean", f32)),
              HasSubstr("mean exists only when keep_stats is true and use_stats is"));
  EXPECT_EQ(error_of(OpBuilder(op).without_input("mean").input("mean", f32, Dims{3})),
            "LayerNorm \"op0\": input mean has shape [3], allowed is [2], the axes of the data before begin_norm_axis");
}

TEST(LayerNormSchema, GivenStatisticsWithoutAffineMoveUp) {
  OpBuilder op(OpKind::LayerNorm);
  op.attr("use_stats", true).attr("use_affine", false).input("src", f32, Dims{2, 8});
  op.input("mean", f32, Dims{2}).input("variance", f32, Dims{2}).output("dst", f32);
  EXPECT_EQ(error_of(op), "");
  EXPECT_EQ(op.view().input_count(), 3U);
}

TEST(LayerNormSchema, TypesOfAffineFollowTheData) {
  const auto error = [](DataType data, DataType affine) {
    OpBuilder op(OpKind::LayerNorm);
    op.input("src", data).input("gamma", affine).input("beta", affine);
    return error_of(op.output("dst", data).output("mean", affine).output("variance", affine));
  };
  EXPECT_EQ(error(f32, f32), "");
  EXPECT_EQ(error(bf16, f32), "");
  EXPECT_EQ(error(bf16, bf16), "");
  EXPECT_EQ(error(f16, f32), "");
  EXPECT_EQ(error(f64, f64), "");
  EXPECT_THAT(error(f16, bf16), HasSubstr("allowed is the type of the input, or f32"));
  EXPECT_THAT(error(f32, bf16), HasSubstr("the types are src f32, gamma bf16, beta bf16 -> dst f32"));
  EXPECT_THAT(error(f32, f64), HasSubstr("allowed is f64 with f64 only"));
  EXPECT_THAT(error(f64, f32), HasSubstr("allowed is f64 with f64 only"));
  EXPECT_EQ(error(f16, f16), "");
}

TEST(LayerNormSchema, AffineAndStatisticsFollowTheDataEachByItself) {
  const auto error = [](DataType data, DataType affine, DataType statistics) {
    OpBuilder op(OpKind::LayerNorm);
    op.input("src", data).input("gamma", affine).input("beta", affine);
    return error_of(op.output("dst", data).output("mean", statistics).output("variance", statistics));
  };
  for (const DataType narrow : {bf16, f16}) {
    EXPECT_EQ(error(narrow, narrow, f32), "");
    EXPECT_EQ(error(narrow, f32, narrow), "");
    EXPECT_THAT(error(f32, f32, narrow), HasSubstr("allowed is the type of the input, or f32"));
  }
  EXPECT_THAT(error(f64, f64, f32), HasSubstr("allowed is f64 with f64 only"));
}

TEST(NormSchemas, StatisticsMayBeInverseDeviations) {
  for (const OpKind kind : {OpKind::LayerNorm, OpKind::LayerNormBackward, OpKind::GroupNorm, OpKind::GroupNormBackward,
                            OpKind::BatchNormTrainingBackward}) {
    EXPECT_EQ(error_of(a_valid_op(kind).attr("stats_kind", "rstd")), "") << name_of(kind);
    EXPECT_THAT(error_of(a_valid_op(kind).attr("stats_kind", "sigma")), HasSubstr("attribute stats_kind is \"sigma\""));
  }
  EXPECT_THAT(error_of(an_op(OpKind::GroupNormBackward)
                           .attr("groups", 1)
                           .attr("use_stats", false)
                           .attr("use_affine", false)
                           .attr("stats_kind", "rstd")
                           .input("src", f32)
                           .input("diff_dst", f32)
                           .output("diff_src", f32)),
              HasSubstr("attribute stats_kind is \"rstd\", allowed is \"variance\" when use_stats is false"));
}

// ---- LayerNormBackward

OpBuilder backward(Dims src = {2, 3, 8}, Dims leading = {2, 3}, Dims affine = {8}) {
  return an_op(OpKind::LayerNormBackward)
      .input("src", f32, src)
      .input("diff_dst", f32, src)
      .input("mean", f32, leading)
      .input("variance", f32, leading)
      .input("gamma", f32, affine)
      .output("diff_src", f32)
      .output("diff_gamma", f32)
      .output("diff_beta", f32);
}

TEST(LayerNormBackwardSchema, GradientsHaveTheShapesOfWhatTheyBelongTo) {
  EXPECT_EQ(shapes_of(backward()), (Shapes{{"diff_src", {2, 3, 8}}, {"diff_gamma", {8}}, {"diff_beta", {8}}}));
  EXPECT_EQ(shapes_of(backward({2, 3, 8}, {2}, {3, 8}).attr("begin_norm_axis", 1)),
            (Shapes{{"diff_src", {2, 3, 8}}, {"diff_gamma", {3, 8}}, {"diff_beta", {3, 8}}}));
  EXPECT_EQ(shapes_of(backward({2, 3, 8}, {2}, {24}).attr("begin_norm_axis", 1)).at("diff_gamma"), (Dims{24}));
}

TEST(LayerNormBackwardSchema, FourInputsWithAffineAreRefusedNamingGamma) {
  EXPECT_EQ(
      error_of(backward().without_input("gamma")),
      "LayerNormBackward \"op0\": 4 inputs are given, but input gamma (port 4) is missing: it is required because use_affine "
      "is true");
  EXPECT_EQ(
      error_of(
          backward().without_input("gamma").attr("use_affine", false).without_output("diff_gamma").without_output("diff_beta")),
      "");
}

TEST(LayerNormBackwardSchema, BetaIsAcceptedAndNotNeeded) {
  EXPECT_EQ(error_of(backward()), "");
  EXPECT_EQ(error_of(backward().input("beta", f32, Dims{8})), "");
}

TEST(LayerNormBackwardSchema, EachOutputMayBeLeftOut) {
  for (const char* output : {"diff_src", "diff_gamma", "diff_beta"}) EXPECT_EQ(error_of(backward().without_output(output)), "");
  EXPECT_EQ(error_of(backward().without_output("diff_src").without_output("diff_gamma").without_output("diff_beta")),
            "LayerNormBackward \"op0\": no output is given, allowed is at least one");
}

TEST(LayerNormBackwardSchema, NoAffineGradientsWithoutAffine) {
  EXPECT_THAT(
      error_of(backward().without_input("gamma").attr("use_affine", false)),
      HasSubstr("3 outputs are given, allowed is at most 1: diff_src; diff_gamma is absent because use_affine is false"));
}

TEST(LayerNormBackwardSchema, StatisticsMayBeRecomputed) {
  EXPECT_EQ(error_of(backward().attr("use_stats", false).without_input("mean").without_input("variance")), "");
  EXPECT_THAT(error_of(backward().attr("use_stats", false)), HasSubstr("variance is absent because use_stats is false"));
}

TEST(LayerNormBackwardSchema, ANormalisedSrcNeedsNoMean) {
  const auto op = backward().attr("src_kind", "normalized").without_input("mean");
  EXPECT_EQ(error_of(op), "");
  EXPECT_EQ(op.view().input("variance"), op.view().input_at(2));
  EXPECT_THAT(error_of(backward().attr("src_kind", "normalized")),
              HasSubstr("mean exists only when use_stats is true and src_kind is raw"));
}

TEST(LayerNormBackwardSchema, FormsOfStatisticsNeedStatistics) {
  auto recomputed = backward().attr("use_stats", false).without_input("mean").without_input("variance");
  EXPECT_THAT(error_of(OpBuilder(recomputed).attr("src_kind", "normalized")),
              HasSubstr("allowed is \"raw\" when use_stats is false"));
  EXPECT_EQ(error_of(OpBuilder(recomputed).attr("stats_kind", "rstd")),
            "LayerNormBackward \"op0\": attribute stats_kind is \"rstd\", allowed is \"variance\" when use_stats is false");
  for (const char* kind : {"variance", "rstd", "std"}) EXPECT_EQ(error_of(backward().attr("stats_kind", kind)), "");
  EXPECT_EQ(error_of(backward().attr("stats_kind", "sigma")),
            "LayerNormBackward \"op0\": attribute stats_kind is \"sigma\", allowed is \"variance\", \"rstd\", \"std\"");
}

TEST(LayerNormBackwardSchema, StatisticsMayKeepTheNormalisedAxesWithExtentOne) {
  EXPECT_EQ(error_of(backward({2, 3, 8}, {2, 3, 1})), "");
  EXPECT_NE(error_of(backward({2, 3, 8}, {2, 1, 1})), "");
}

TEST(LayerNormBackwardSchema, ShapesAgree) {
  EXPECT_EQ(error_of(backward().without_input("diff_dst").input("diff_dst", f32, Dims{2, 3, 9})),
            "LayerNormBackward \"op0\": input diff_dst has shape [2, 3, 9], allowed is [2, 3, 8], the shape of src");
  EXPECT_THAT(error_of(backward({2, 3, 8}, {2, 3, 8})), HasSubstr("input mean has shape [2, 3, 8], allowed is [2, 3]"));
  EXPECT_THAT(error_of(backward({2, 3, 8}, {2, 3}, {7})), HasSubstr("input gamma has shape [7], allowed is [8]"));
}

// ---- the older forms

OpBuilder backprop(DataType forward, DataType data, DataType affine) {
  return an_op(OpKind::LayerNormBackprop)
      .input("input_forward", forward, Dims{4, 8})
      .input("output_delta", data, Dims{4, 8})
      .input("gamma", affine, Dims{8})
      .input("beta", affine, Dims{8})
      .input("mean", affine, Dims{4})
      .input("variance", affine, Dims{4})
      .output("input_delta", data)
      .output("gamma_delta", affine)
      .output("beta_delta", affine);
}

TEST(LayerNormBackpropSchema, PortsAreInTheOrderOfItsDocument) {
  const auto op = backprop(f32, f32, f32);
  EXPECT_EQ(shapes_of(op), (Shapes{{"input_delta", {4, 8}}, {"gamma_delta", {8}}, {"beta_delta", {8}}}));
  EXPECT_EQ(op.view().input("gamma"), op.view().input_at(2));
  EXPECT_EQ(op.view().input("variance"), op.view().input_at(5));
}

TEST(LayerNormBackpropSchema, TheIncomingGradientIsRequired) {
  EXPECT_THAT(error_of(backprop(f32, f32, f32).without_input("output_delta")),
              HasSubstr("input output_delta (port 1) is missing"));
}

TEST(LayerNormBackpropSchema, TakesEveryNumericType) {
  for (DataType type : {f32, f64, bf16, f16}) EXPECT_EQ(error_of(backprop(type, type, type)), "");
  for (DataType type : {DataType::s8, DataType::u8, DataType::s32, DataType::s64})
    EXPECT_EQ(error_of(backprop(type, f32, f32)), "");
  EXPECT_EQ(error_of(backprop(bf16, bf16, f32)), "");
  EXPECT_THAT(error_of(backprop(DataType::s8, bf16, f32)), HasSubstr("f32 for all but an integer input_forward"));
  EXPECT_THAT(error_of(backprop(f32, bf16, f32)), HasSubstr("allowed is one type for all"));
  EXPECT_THAT(error_of(backprop(f64, f64, f32)), HasSubstr("allowed is one type for all"));
}

TEST(LayerNormBackpropSchema, StatisticsFollowUseStats) {
  const auto op = backprop(f32, f32, f32).attr("use_stats", false).without_input("mean").without_input("variance");
  EXPECT_EQ(error_of(op), "");
  EXPECT_THAT(error_of(backprop(f32, f32, f32).without_input("mean").without_input("variance")),
              HasSubstr("input mean (port 4) is missing: it is required because use_stats is true"));
}

OpBuilder grad(Dims x, Dims statistics, Dims gamma, DataType data = f32, DataType affine = f32, DataType stats = f32) {
  return an_op(OpKind::LayerNormGrad)
      .input("dy", data, x)
      .input("x", data, x)
      .input("variance", stats, statistics)
      .input("mean", stats, statistics)
      .input("gamma", affine, gamma)
      .output("pd_x", data)
      .output("pd_gamma", affine)
      .output("pd_beta", affine);
}

TEST(LayerNormGradSchema, TheRankOfGammaSaysWhichAxesAreNormalised) {
  EXPECT_EQ(shapes_of(grad({2, 3, 8}, {2, 3, 1}, {8})), (Shapes{{"pd_x", {2, 3, 8}}, {"pd_gamma", {8}}, {"pd_beta", {8}}}));
  EXPECT_EQ(shapes_of(grad({2, 3, 8}, {2, 1, 1}, {3, 8})).at("pd_beta"), (Dims{3, 8}));
  EXPECT_EQ(error_of(grad({2, 3, 8}, {1, 1, 1}, {2, 3, 8})), "");
  EXPECT_THAT(error_of(grad({2, 8}, {1, 1}, {1, 2, 8})), HasSubstr("allowed is rank 1..2"));
  EXPECT_THAT(error_of(grad({2, 8}, {1, 1}, {})), HasSubstr("allowed is rank 1..2"));
  EXPECT_THAT(error_of(grad({2, 3, 8}, {2, 3, 1}, {3, 8})),
              HasSubstr("input variance has shape [2, 3, 1], allowed is [2, 1, 1]"));
  EXPECT_THAT(error_of(grad({2, 3, 8}, {2, 3}, {8})), HasSubstr("allowed is [2, 3, 1]"));
}

TEST(LayerNormGradSchema, OutputsFollowTheMask) {
  const auto masked = [](std::vector<int64_t> mask) { return grad({4, 8}, {4, 1}, {8}).attr("output_mask", std::move(mask)); };
  EXPECT_EQ(error_of(masked({1, 0, 1}).without_output("pd_gamma")), "");
  EXPECT_EQ(error_of(masked({0, 1, 1}).without_output("pd_x")), "");
  EXPECT_THAT(error_of(masked({1, 0, 1})), HasSubstr("3 outputs are given, allowed is at most 2: pd_x, pd_beta"));
  for (const std::vector<int64_t>& mask : {std::vector<int64_t>{1, 1}, {1, 2, 0}, {0, 0, 0}})
    EXPECT_THAT(error_of(masked(mask)), HasSubstr("allowed is three of 0 or 1, not all 0"));
}

TEST(LayerNormGradSchema, Types) {
  EXPECT_EQ(error_of(grad({4, 8}, {4, 1}, {8}, f16, f16, f32)), "");
  EXPECT_EQ(error_of(grad({4, 8}, {4, 1}, {8}, bf16, f32, bf16)), "");
  EXPECT_EQ(error_of(grad({4, 8}, {4, 1}, {8}, f64, f64, f64)), "");
  EXPECT_EQ(error_of(grad({4, 8}, {4, 1}, {8}, f32, bf16, f32)), "");
  EXPECT_EQ(error_of(grad({4, 8}, {4, 1}, {8}, bf16, f16, f16)), "");
  EXPECT_THAT(error_of(grad({4, 8}, {4, 1}, {8}, f32, f32, bf16)), HasSubstr("mean and variance at least as wide as x"));
  EXPECT_THAT(error_of(grad({4, 8}, {4, 1}, {8}, f32, f64, f32)), HasSubstr("f64 with f64 only"));
}

// ---- RMSNorm and GroupNorm

TEST(RMSNormSchema, GammaIsOptional) {
  OpBuilder op(OpKind::RMSNorm);
  op.input("src", f32, Dims{2, 3, 8}).output("dst", f32);
  EXPECT_EQ(shapes_of(op), (Shapes{{"dst", {2, 3, 8}}}));
  EXPECT_EQ(error_of(OpBuilder(op).input("gamma", f32, Dims{8})), "");
  EXPECT_EQ(error_of(OpBuilder(op).input("gamma", f32, Dims{3, 8}).attr("begin_norm_axis", 1)), "");
  EXPECT_THAT(error_of(OpBuilder(op).input("gamma", f32, Dims{3})), HasSubstr("input gamma has shape [3], allowed is [8]"));
  EXPECT_THAT(error_of(OpBuilder(op).attr("begin_norm_axis", 3)), HasSubstr("allowed is -3..2"));
}

TEST(RMSNormSchema, GammaMayBeF16) {
  OpBuilder op(OpKind::RMSNorm);
  EXPECT_EQ(error_of(op.input("src", f16).input("gamma", f16).output("dst", f16)), "");
}

OpBuilder group_norm(const char* format, Dims src, int groups, int64_t channels) {
  return an_op(OpKind::GroupNorm)
      .attr("data_format", format)
      .attr("groups", groups)
      .input("src", f32, std::move(src))
      .input("gamma", f32, Dims{channels})
      .input("beta", f32, Dims{channels})
      .output("dst", f32)
      .output("mean", f32)
      .output("variance", f32);
}

TEST(GroupNormSchema, StatisticsArePerSampleAndGroup) {
  EXPECT_EQ(shapes_of(group_norm("NCX", {2, 6, 4, 4}, 3, 6)),
            (Shapes{{"dst", {2, 6, 4, 4}}, {"mean", {2, 3}}, {"variance", {2, 3}}}));
  EXPECT_EQ(error_of(group_norm("NXC", {2, 4, 4, 6}, 3, 6)), "");
  EXPECT_THAT(error_of(group_norm("NXC", {2, 6, 4, 4}, 2, 6)), HasSubstr("input gamma has shape [6], allowed is [4]"));
}

TEST(GroupNormSchema, GroupsDivideTheChannels) {
  EXPECT_EQ(error_of(group_norm("NCX", {2, 6, 4, 4}, 4, 6)),
            "GroupNorm \"op0\": attribute groups is 4, allowed is a divisor of the 6 channels of src");
  EXPECT_THAT(error_of(group_norm("NCX", {2, 6, 4, 4}, 0, 6)), HasSubstr("attribute groups is 0, allowed is 1 or more"));
  EXPECT_THAT(error_of(group_norm("NCX", {6}, 1, 6)), HasSubstr("allowed is rank 2 or more"));
}

TEST(GroupNormSchema, StatisticsOutputsFollowKeepStats) {
  EXPECT_THAT(error_of(group_norm("NCX", {2, 6}, 3, 6).attr("keep_stats", false)),
              HasSubstr("3 outputs are given, allowed is at most 1: dst; mean is absent because keep_stats is false"));
}

// ---- RMSNormBackward and GroupNormBackward

OpBuilder rms_backward(Dims gamma) {
  return an_op(OpKind::RMSNormBackward)
      .attr("begin_norm_axis", 1)
      .input("src", f32, Dims{2, 3, 8})
      .input("diff_dst", f32, Dims{2, 3, 8})
      .input("gamma", f32, std::move(gamma))
      .output("diff_src", f32)
      .output("diff_gamma", f32);
}

TEST(RMSNormBackwardSchema, GradientsHaveTheShapesOfSrcAndGamma) {
  EXPECT_EQ(shapes_of(rms_backward({3, 8})), (Shapes{{"diff_src", {2, 3, 8}}, {"diff_gamma", {3, 8}}}));
  EXPECT_EQ(shapes_of(rms_backward({24})), (Shapes{{"diff_src", {2, 3, 8}}, {"diff_gamma", {24}}}));
  EXPECT_THAT(error_of(rms_backward({8})), HasSubstr("input gamma has shape [8], allowed is [3, 8]"));
}

TEST(RMSNormBackwardSchema, EachOutputMayBeLeftOutButNotBoth) {
  EXPECT_EQ(error_of(rms_backward({24}).without_output("diff_src")), "");
  EXPECT_EQ(error_of(rms_backward({24}).without_output("diff_gamma")), "");
  EXPECT_THAT(error_of(rms_backward({24}).without_output("diff_src").without_output("diff_gamma")),
              HasSubstr("no output is given, allowed is at least one"));
}

TEST(RMSNormBackwardSchema, DiffGammaNeedsGamma) {
  EXPECT_EQ(error_of(rms_backward({24}).without_input("gamma").without_output("diff_gamma")), "");
  EXPECT_EQ(error_of(rms_backward({24}).without_input("gamma")),
            "RMSNormBackward \"op0\": output diff_gamma is given, allowed is none when input gamma is absent");
}

TEST(RMSNormBackwardSchema, DiffDstHasTheShapeOfSrc) {
  EXPECT_THAT(error_of(rms_backward({24}).without_input("diff_dst").input("diff_dst", f32, Dims{2, 8, 3})),
              HasSubstr("diff_dst has shape [2, 8, 3]"));
}

OpBuilder group_backward(const char* format, Dims src, int64_t channels) {
  return an_op(OpKind::GroupNormBackward)
      .attr("data_format", format)
      .attr("groups", 3)
      .input("src", f32, src)
      .input("diff_dst", f32, src)
      .input("mean", f32, Dims{2, 3})
      .input("variance", f32, Dims{2, 3})
      .input("gamma", f32, Dims{channels})
      .output("diff_src", f32)
      .output("diff_gamma", f32)
      .output("diff_beta", f32);
}

TEST(GroupNormBackwardSchema, GradientsHaveTheShapesOfSrcAndTheChannels) {
  EXPECT_EQ(shapes_of(group_backward("NCX", {2, 6, 4, 4}, 6)),
            (Shapes{{"diff_src", {2, 6, 4, 4}}, {"diff_gamma", {6}}, {"diff_beta", {6}}}));
  EXPECT_EQ(error_of(group_backward("NXC", {2, 4, 4, 6}, 6)), "");
  EXPECT_THAT(error_of(group_backward("NXC", {2, 6, 4, 3}, 6)), HasSubstr("input gamma has shape [6], allowed is [3]"));
}

TEST(GroupNormBackwardSchema, StatisticsArePerSampleAndGroup) {
  EXPECT_THAT(error_of(group_backward("NCX", {4, 6, 4}, 6)), HasSubstr("input mean has shape [2, 3], allowed is [4, 3]"));
  const auto recomputed = group_backward("NCX", {2, 6, 4}, 6).attr("use_stats", false);
  EXPECT_EQ(error_of(OpBuilder(recomputed).without_input("mean").without_input("variance")), "");
  EXPECT_THAT(error_of(recomputed), HasSubstr("mean is absent because use_stats is false"));
}

TEST(GroupNormBackwardSchema, WithoutAffineOnlyDiffSrcIsLeft) {
  const auto plain = group_backward("NCX", {2, 6, 4}, 6).attr("use_affine", false).without_input("gamma");
  EXPECT_THAT(error_of(plain), HasSubstr("3 outputs are given, allowed is at most 1: diff_src"));
  EXPECT_EQ(error_of(OpBuilder(plain).without_output("diff_gamma").without_output("diff_beta")), "");
}

TEST(GroupNormBackwardSchema, GroupsDivideTheChannels) {
  EXPECT_THAT(error_of(group_backward("NCX", {2, 6, 4}, 6).attr("groups", 4)),
              HasSubstr("allowed is a divisor of the 6 channels"));
}

}  // namespace
}  // namespace lamina::testing
