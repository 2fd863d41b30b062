// Gradients of the norms: by finite differences of the forward op, and comparison of the three forms of LayerNormBackward.
#include "backends/reference/gradient_check.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

using ::testing::Each;
constexpr DataType f64 = DataType::f64;
constexpr DataType none = DataType::undef;

// src [3, 2, 4] normalised from axis 1 (rows of 8).
struct Problem {
  RandomTensor random{7};
  Dims shape{3, 2, 4}, row{2, 4}, stats{3}, stats_with_ones{3, 1, 1};
  Numbers src = random.uniform(24, -2, 3);
  Numbers diff_dst = random.uniform(24, -1, 1);
  Numbers gamma = random.uniform(8, 0.5, 2);
  Numbers beta = random.uniform(8, -1, 1);
  double epsilon = 0.125;

  OpCase forward() const {
    OpCase op(OpKind::LayerNorm);
    op.input(shape, src).input(row, gamma).input(row, beta);
    op.attr("begin_norm_axis", 1).attr("epsilon", epsilon).outputs({f64, f64, f64});
    return op;
  }
  Numbers mean() const { return forward().result(1); }
  Numbers variance() const { return forward().result(2); }

  OpCase backward() const {
    OpCase op(OpKind::LayerNormBackward);
    op.input(shape, src).input(shape, diff_dst).input(stats, mean()).input(stats, variance()).input(row, gamma);
    op.attr("begin_norm_axis", 1).attr("epsilon", epsilon).outputs({f64, f64, f64});
    return op;
  }
};

void expect_same_gradients(const OpCase& a, const OpCase& b) {
  for (size_t port = 0; port < 3; ++port) expect_close(a.result(port), b.result(port), 1e-12);
}

TEST(ReferenceLayerNormBackward, AgreesWithFiniteDifferences) {
  const Problem p;
  const OpCase forward = p.forward(), backward = p.backward();
  expect_close(backward.result(0), gradient_by_differences(forward, 0, p.diff_dst), 1e-8);
  expect_close(backward.result(1), gradient_by_differences(forward, 1, p.diff_dst), 1e-8);
  expect_close(backward.result(2), gradient_by_differences(forward, 2, p.diff_dst), 1e-8);
}

TEST(ReferenceLayerNormBackward, TakesVarianceRstdOrStd) {
  const Problem p;
  Numbers rstd, std;
  for (const double v : p.variance()) {
    std.push_back(std::sqrt(v + p.epsilon));
    rstd.push_back(1 / std.back());
  }
  expect_same_gradients(p.backward().set(3, rstd).attr("stats_kind", "rstd"), p.backward());
  expect_same_gradients(p.backward().set(3, std).attr("stats_kind", "std"), p.backward());
}

TEST(ReferenceLayerNormBackward, TakesSrcThatIsNormalizedAlready) {
  const Problem p;
  const Numbers mean = p.mean(), variance = p.variance();
  Numbers normalized = p.src, std;
  for (size_t i = 0; i < normalized.size(); ++i)
    normalized[i] = (p.src[i] - mean[i / 8]) / std::sqrt(variance[i / 8] + p.epsilon);
  for (const double v : variance) std.push_back(std::sqrt(v + p.epsilon));
  OpCase op(OpKind::LayerNormBackward);
  op.input(p.shape, normalized).input(p.shape, p.diff_dst).input(p.stats, std).input(p.row, p.gamma);
  op.attr("begin_norm_axis", 1).attr("stats_kind", "std").attr("src_kind", "normalized").outputs({f64, f64, f64});
  expect_same_gradients(op, p.backward());
}

TEST(ReferenceLayerNormBackward, RecomputesStatisticsThatAreNotGiven) {
  const Problem p;
  OpCase op(OpKind::LayerNormBackward);
  op.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, p.gamma);
  op.attr("begin_norm_axis", -2).attr("use_stats", false).attr("epsilon", p.epsilon).outputs({f64, f64, f64});
  expect_same_gradients(op, p.backward());
}

TEST(ReferenceLayerNormBackward, WithoutAffineGammaCountsAsOne) {
  Problem p;
  p.gamma.assign(8, 1);
  OpCase op(OpKind::LayerNormBackward);
  op.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.stats, p.mean()).input(p.stats, p.variance());
  op.attr("begin_norm_axis", 1).attr("epsilon", p.epsilon).attr("use_affine", false);
  expect_close(op.result(), p.backward().result());
}

TEST(ReferenceLayerNormBackward, LeavesOutWhatNobodyAskedFor) {
  const Problem p;
  const OpCase full = p.backward();
  OpCase only_beta = p.backward();
  only_beta.outputs({none, none, f64});
  EXPECT_TRUE(only_beta.result(0).empty());
  EXPECT_EQ(only_beta.result(2), full.result(2));
  OpCase only_src = p.backward();
  EXPECT_EQ(only_src.outputs({f64}).result(0), full.result(0));
}

TEST(ReferenceLayerNormBackward, RowsOfOneElementHaveNoGradientButBeta) {
  OpCase op(OpKind::LayerNormBackward);
  op.input({3, 1}, {0.1, 5, -7}).input({3, 1}, {1, 2, 4}).input({1}, {3}).attr("use_stats", false).outputs({f64, f64, f64});
  EXPECT_THAT(op.result(0), Each(0));
  EXPECT_THAT(op.result(1), Each(0));
  EXPECT_THAT(op.result(2), Each(7));
}

TEST(ReferenceLayerNormBackward, SumsOverNoRowsAreZero) {
  OpCase op(OpKind::LayerNormBackward);
  op.input({0, 2}, {}).input({0, 2}, {}).input({0}, {}).input({0}, {}).input({2}, {1, 1}).outputs({f64, f64, f64});
  EXPECT_TRUE(op.result(0).empty());
  EXPECT_EQ(op.result(1), Numbers({0, 0}));
  EXPECT_EQ(op.result(2), Numbers({0, 0}));
}

TEST(ReferenceLayerNormBackprop, IsLayerNormBackwardWithOtherPorts) {
  const Problem p;
  OpCase given(OpKind::LayerNormBackprop);
  given.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, p.gamma).input(p.row, p.beta);
  given.input(p.stats, p.mean()).input(p.stats, p.variance());
  given.attr("begin_norm_axis", 1).attr("epsilon", p.epsilon).outputs({f64, f64, f64});
  expect_same_gradients(given, p.backward());
  OpCase computed(OpKind::LayerNormBackprop);
  computed.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, p.gamma).input(p.row, p.beta);
  computed.attr("begin_norm_axis", 1).attr("epsilon", p.epsilon).attr("use_stats", false).outputs({f64, f64, f64});
  expect_same_gradients(computed, p.backward());
}

TEST(ReferenceLayerNormBackprop, AgreesAlsoOnStatisticsThatDoNotBelongToSrc) {
  const Problem p;
  const Numbers mean{1, -2, 0.5}, variance{0.3, 4, 1};
  OpCase op(OpKind::LayerNormBackprop);
  op.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, p.gamma).input(p.row, p.beta);
  op.input(p.stats, mean).input(p.stats, variance);
  op.attr("begin_norm_axis", 1).attr("epsilon", p.epsilon).outputs({f64, f64, f64});
  expect_same_gradients(op, p.backward().set(2, mean).set(3, variance));
}

TEST(ReferenceLayerNormGrad, IsLayerNormBackwardWithAxesFromGamma) {
  const Problem p;
  OpCase op(OpKind::LayerNormGrad);
  op.input(p.shape, p.diff_dst).input(p.shape, p.src).input(p.stats_with_ones, p.variance()).input(p.stats_with_ones, p.mean());
  op.input(p.row, p.gamma).attr("epsilon", p.epsilon).outputs({f64, f64, f64});
  expect_same_gradients(op, p.backward());
}

TEST(ReferenceLayerNormGrad, OutputsFollowTheMask) {
  const Problem p;
  OpCase op(OpKind::LayerNormGrad);
  op.input(p.shape, p.diff_dst).input(p.shape, p.src).input(p.stats_with_ones, p.variance()).input(p.stats_with_ones, p.mean());
  op.input(p.row, p.gamma).attr("epsilon", p.epsilon).attr("output_mask", Attribute(std::vector<int64_t>{0, 1, 0}));
  expect_close(op.result(0), p.backward().result(1), 1e-12);
}

TEST(ReferenceRMSNormBackward, AgreesWithFiniteDifferences) {
  const Problem p;
  OpCase forward(OpKind::RMSNorm), backward(OpKind::RMSNormBackward);
  forward.input(p.shape, p.src).input(p.row, p.gamma).attr("begin_norm_axis", 1).attr("epsilon", p.epsilon);
  backward.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, p.gamma);
  backward.attr("begin_norm_axis", 1).attr("epsilon", p.epsilon).outputs({f64, f64});
  expect_close(backward.result(0), gradient_by_differences(forward, 0, p.diff_dst), 1e-8);
  expect_close(backward.result(1), gradient_by_differences(forward, 1, p.diff_dst), 1e-8);
}

TEST(ReferenceRMSNormBackward, WithoutGammaItCountsAsOne) {
  const Problem p;
  OpCase plain(OpKind::RMSNormBackward), ones(OpKind::RMSNormBackward);
  plain.input(p.shape, p.src).input(p.shape, p.diff_dst).attr("begin_norm_axis", 1);
  ones.input(p.shape, p.src).input(p.shape, p.diff_dst).input(p.row, Numbers(8, 1)).attr("begin_norm_axis", 1);
  EXPECT_EQ(plain.result(), ones.result());
}

// src [2, 4, 3] (or its channels-last twin [2, 3, 4]) in two groups of two channels.
struct GroupProblem {
  explicit GroupProblem(const char* data_format) : format(data_format), shape{2, 4, 3} {
    if (format == "NXC") shape = {2, 3, 4};
  }
  OpCase forward() const {
    OpCase op(OpKind::GroupNorm);
    op.input(shape, src).input({4}, gamma).input({4}, beta).outputs({f64, f64, f64});
    return with_attributes(op);
  }
  OpCase backward(bool use_stats) const {
    OpCase op(OpKind::GroupNormBackward);
    op.input(shape, src).input(shape, diff_dst);
    if (use_stats) op.input({2, 2}, forward().result(1)).input({2, 2}, forward().result(2));
    op.input({4}, gamma).attr("use_stats", use_stats).outputs({f64, f64, f64});
    return with_attributes(op);
  }
  OpCase with_attributes(OpCase op) const {
    return op.attr("groups", 2).attr("data_format", format.c_str()).attr("epsilon", 0.125);
  }

  std::string format;
  Dims shape;
  RandomTensor random{11};
  Numbers src = random.uniform(24, -2, 3), diff_dst = random.uniform(24, -1, 1);
  Numbers gamma = random.uniform(4, 0.5, 2), beta = random.uniform(4, -1, 1);
};

TEST(ReferenceGroupNormBackward, AgreesWithFiniteDifferences) {
  for (const char* format : {"NCX", "NXC"}) {
    const GroupProblem p(format);
    for (const bool use_stats : {false, true})
      for (size_t port = 0; port < 3; ++port)
        expect_close(p.backward(use_stats).result(port), gradient_by_differences(p.forward(), port, p.diff_dst), 1e-8);
  }
}

TEST(ReferenceGroupNormBackward, OneGroupOfASampleIsLayerNormBackward) {
  const Problem p;
  OpCase groups(OpKind::GroupNormBackward), rows(OpKind::LayerNormBackward);
  groups.input({3, 8}, p.src).input({3, 8}, p.diff_dst).input({8}, p.gamma);
  groups.attr("groups", 1).attr("use_stats", false).attr("data_format", "NCX").outputs({f64, f64, f64});
  rows.input({3, 8}, p.src).input({3, 8}, p.diff_dst).input({8}, p.gamma).attr("use_stats", false).outputs({f64, f64, f64});
  expect_same_gradients(groups, rows);
}

TEST(ReferenceBatchNormBackward, AgreesWithFiniteDifferences) {
  RandomTensor random(3);
  const Dims shape{3, 2, 2, 2}, channels{2};
  const Numbers src = random.uniform(24, -2, 2), dy = random.uniform(24, -1, 1), gamma{1.5, -0.5}, zero{0, 0};
  OpCase forward(OpKind::BatchNormForwardTraining);
  forward.input(shape, src).input(channels, zero).input(channels, zero).input(channels, gamma).input(channels, zero);
  forward.attr("epsilon", 0.25).attr("data_format", "NCX").outputs({f64, f64, f64, f64, f64});
  OpCase backward(OpKind::BatchNormTrainingBackward);
  backward.input(shape, src).input(shape, dy).input(channels, forward.result(3)).input(channels, forward.result(4));
  backward.input(channels, gamma).attr("epsilon", 0.25).attr("data_format", "NCX").outputs({f64, f64, f64});
  expect_close(backward.result(0), gradient_by_differences(forward, 0, dy), 1e-8);
  expect_close(backward.result(1), gradient_by_differences(forward, 3, dy), 1e-8);
  expect_close(backward.result(2), gradient_by_differences(forward, 4, dy), 1e-8);
}

}  // namespace
}  // namespace lamina::testing
