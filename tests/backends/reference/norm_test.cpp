// Forward norms against numbers computed by hand. epsilon is a power of two where a root must be exact.
#include <limits>

#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
constexpr DataType f64 = DataType::f64;
const double kNaN = std::numeric_limits<double>::quiet_NaN();

TEST(ReferenceLayerNorm, NormalizesTheLastAxisByDefault) {
  // row 1, 3: mean 2, variance 1; 1 + 0.5625 = 1.25^2.   row 0, 8: mean 4, variance 16; 16.5625 = 4.0697^2
  OpCase op(OpKind::LayerNorm);
  op.input({2, 2}, {1, 3, 0, 8}).input({2}, {10, 20}).input({2}, {1, 2}).attr("epsilon", 0.5625).outputs({f64, f64, f64});
  const double r = 4 / std::sqrt(16.5625);
  expect_close(op.result(0), {-10 / 1.25 + 1, 20 / 1.25 + 2, -10 * r + 1, 20 * r + 2});
  expect_close(op.result(1), {2, 4});
  expect_close(op.result(2), {1, 16});
}

TEST(ReferenceLayerNorm, NormalizesSeveralAxesTogether) {
  // src [1, 2, 2] from axis 1: 1 2 3 6, mean 3, variance (4 + 1 + 0 + 9) / 4 = 3.5; 3.5 + 0.5 = 2^2
  OpCase op(OpKind::LayerNorm);
  op.input({1, 2, 2}, {1, 2, 3, 6}).attr("begin_norm_axis", 1).attr("use_affine", false).attr("epsilon", 0.5);
  op.outputs({f64, f64, f64});
  expect_close(op.result(0), {-1, -0.5, 0, 1.5});
  expect_close(op.result(1), {3});
  EXPECT_EQ(op.run()[1].shape, Dims({1}));
  expect_close(op.result(2), {3.5});
}

TEST(ReferenceLayerNorm, UsesGivenStatistics) {
  OpCase op(OpKind::LayerNorm);
  op.input({2, 1}, {5, 7}).input({2}, {1, 3}).input({2}, {3, 15}).attr("use_affine", false).attr("use_stats", true);
  op.attr("epsilon", 1.0);
  expect_close(op.result(), {2, 1});
}

TEST(ReferenceLayerNorm, ConstantRowsAndRowsOfOneElementGiveBetaExactly) {
  OpCase constant(OpKind::LayerNorm);
  constant.input({1, 3}, {0.1, 0.1, 0.1}).input({3}, {7, 7, 7}).input({3}, {1, 2, 3}).outputs({f64, f64, f64});
  EXPECT_THAT(constant.result(0), ElementsAre(1, 2, 3));
  EXPECT_THAT(constant.result(2), ElementsAre(0));
  OpCase single(OpKind::LayerNorm);
  single.input({2, 1}, {0.1, 1e30}).input({1}, {7}).input({1}, {3}).attr("keep_stats", false);
  EXPECT_THAT(single.result(0), ElementsAre(3, 3));
}

TEST(ReferenceLayerNorm, KeepsItsAccuracyUnderALargeMean) {
  // The same row, once near 0 and once shifted by 2^40: only the sum of a long row is inexact.
  Numbers small, shifted;
  for (int i = 0; i < 4096; ++i) {
    small.push_back(i % 7);
    shifted.push_back(i % 7 + 1099511627776.0);
  }
  OpCase op(OpKind::LayerNorm);
  op.input({1, 4096}, small).attr("use_affine", false).attr("keep_stats", false);
  const Numbers expected = op.result();
  expect_close(op.set(0, shifted).result(), expected, 1e-12);
}

TEST(ReferenceLayerNorm, NanAndInfinitySpoilTheirOwnRowOnly) {
  OpCase op(OpKind::LayerNorm);
  op.input({3, 2}, {1, kNaN, 1, 3, 1, std::numeric_limits<double>::infinity()}).attr("use_affine", false);
  op.attr("epsilon", 0.5625).outputs({f64, f64, f64});
  expect_close(op.result(0), {kNaN, kNaN, -0.8, 0.8, kNaN, kNaN});
  expect_close(op.result(1), {kNaN, 2, std::numeric_limits<double>::infinity()});
}

TEST(ReferenceLayerNorm, TensorsWithoutElementsAreANoOp) {
  OpCase op(OpKind::LayerNorm);
  op.input({0, 4}, {}).attr("use_affine", false).outputs({f64, f64, f64});
  EXPECT_TRUE(op.result(0).empty());
  EXPECT_TRUE(op.result(1).empty());
}

TEST(ReferenceRmsNorm, DividesByOneRootOnly) {
  // mean of squares (9 + 41) / 2 = 25; with epsilon 11 the root is 6
  OpCase op(OpKind::RMSNorm);
  op.input({1, 2}, {3, std::sqrt(41.0)}).input({2}, {2, 6}).attr("epsilon", 11.0);
  expect_close(op.result(), {1, std::sqrt(41.0)});
  OpCase plain(OpKind::RMSNorm);
  plain.input({1, 1, 2}, {3, std::sqrt(41.0)}).attr("epsilon", 11.0).attr("begin_norm_axis", 1);
  expect_close(plain.result(), {0.5, std::sqrt(41.0) / 6});
}

TEST(ReferenceGroupNorm, TakesChannelsInTheSecondPlaceOrTheLast) {
  // One sample, 4 channels in 2 groups, 2 positions. Group 0: channels {0, 2}, {4, 6}: mean 3, variance 5.
  // Group 1: {10, 10}, {12, 12}: mean 11, variance 1.   epsilon 4: roots 3 and sqrt(5).
  const double r = 1 / std::sqrt(5.0);
  OpCase ncx(OpKind::GroupNorm);
  ncx.input({1, 4, 2}, {0, 2, 4, 6, 10, 10, 12, 12}).input({4}, {3, 3, 3, 3}).input({4}, {0, 1, 0, 0});
  ncx.attr("groups", 2).attr("epsilon", 4.0).attr("data_format", "NCX").outputs({f64, f64, f64});
  expect_close(ncx.result(0), {-3, -1, 2, 4, -3 * r, -3 * r, 3 * r, 3 * r});
  expect_close(ncx.result(1), {3, 11});
  expect_close(ncx.result(2), {5, 1});
  OpCase nxc(OpKind::GroupNorm);
  nxc.input({1, 2, 4}, {0, 4, 10, 12, 2, 6, 10, 12}).input({4}, {3, 3, 3, 3}).input({4}, {0, 1, 0, 0});
  nxc.attr("groups", 2).attr("epsilon", 4.0).attr("keep_stats", false);
  expect_close(nxc.result(0), {-3, 2, -3 * r, 3 * r, -1, 4, -3 * r, 3 * r});
}

TEST(ReferenceBatchNorm, InferenceUsesOneMeanAndVarianceAChannel) {
  OpCase op(OpKind::BatchNormInference);
  op.input({1, 2, 2}, {1, 10, 3, 30}).input({2}, {2, 1}).input({2}, {0, 5}).input({2}, {1, 10}).input({2}, {3, 99});
  op.attr("epsilon", 1.0);
  expect_close(op.result(), {0, 5, 2, 7});
}

TEST(ReferenceBatchNorm, TrainingBlendsTheRunningStatistics) {
  // channel 0: 1, 3 -> mean 2, variance 1;  channel 1: 0, 0 -> 0, 0
  OpCase op(OpKind::BatchNormForwardTraining);
  op.input({2, 2, 1}, {1, 0, 3, 0}).input({2}, {10, 20}).input({2}, {5, 8}).attr("epsilon", 3.0).attr("momentum", 0.25);
  op.attr("data_format", "NCX").outputs({f64, f64, f64, f64, f64});
  expect_close(op.result(0), {-0.5, 0, 0.5, 0});
  expect_close(op.result(1), {0.25 * 10 + 0.75 * 2, 0.25 * 20});
  expect_close(op.result(2), {0.25 * 5 + 0.75 * 1, 0.25 * 8});
  expect_close(op.result(3), {2, 0});
  expect_close(op.result(4), {1, 0});
}

}  // namespace
}  // namespace lamina::testing
