// The form of a norm's statistics, as outputs and as inputs: a variance, or 1 / sqrt(variance + epsilon).
#include "backends/reference/op_case.h"
#include "support/random_tensor.h"

namespace lamina::testing {
namespace {

constexpr DataType f64 = DataType::f64;
constexpr double kEpsilon = 0.125;

Numbers inverse_deviations(const Numbers& variance) {
  Numbers result;
  for (const double v : variance) result.push_back(1 / std::sqrt(v + kEpsilon));
  return result;
}

void expect_close(const Numbers& got, const Numbers& want) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], 1e-12) << i;
}

// The op's statistics, mean and variance, are outputs 1 and 2.
void expect_rstd_out(OpCase op) {
  op.attr("epsilon", kEpsilon).outputs({f64, f64, f64});
  const Numbers dst = op.result(), variance = op.result(2);
  op.attr("stats_kind", "rstd");
  EXPECT_EQ(op.result(), dst);
  expect_close(op.result(2), inverse_deviations(variance));
}

// Input `port` is the variance.
void expect_rstd_in(OpCase op, size_t port, size_t outputs) {
  op.attr("epsilon", kEpsilon).outputs(std::vector<DataType>(outputs, f64));
  std::vector<Numbers> want;
  for (size_t o = 0; o < outputs; ++o) want.push_back(op.result(o));
  const Numbers variance = op.numbers(port);
  op.attr("stats_kind", "rstd").set(port, inverse_deviations(variance));
  for (size_t o = 0; o < outputs; ++o) expect_close(op.result(o), want[o]);
}

TEST(ReferenceStatistics, LayerNormGivesAndTakesInverseDeviations) {
  RandomTensor random{3};
  OpCase forward(OpKind::LayerNorm), with_stats(OpKind::LayerNorm), backward(OpKind::LayerNormBackward);
  const Numbers src = random.uniform(24, -2, 3), mean = random.uniform(3, -1, 1), variance = random.uniform(3, 0.5, 2);
  forward.input({3, 8}, src).attr("use_affine", false);
  expect_rstd_out(forward);
  with_stats.input({3, 8}, src).input({3}, mean).input({3}, variance).attr("use_affine", false).attr("use_stats", true);
  expect_rstd_in(with_stats, 2, 1);
  backward.input({3, 8}, src).input({3, 8}, random.uniform(24, -1, 1)).input({3}, mean).input({3}, variance);
  expect_rstd_in(backward.attr("use_affine", false), 3, 1);
}

TEST(ReferenceStatistics, GroupNormGivesAndTakesInverseDeviations) {
  RandomTensor random{4};
  OpCase forward(OpKind::GroupNorm), backward(OpKind::GroupNormBackward);
  const Numbers src = random.uniform(2 * 6 * 5, -2, 3), gamma = random.uniform(6, 0.5, 2);
  forward.input({2, 5, 6}, src).input({6}, gamma).input({6}, gamma).attr("groups", 3);
  expect_rstd_out(forward);
  backward.input({2, 5, 6}, src).input({2, 5, 6}, random.uniform(60, -1, 1)).input({2, 3}, random.uniform(6, -1, 1));
  backward.input({2, 3}, random.uniform(6, 0.5, 2)).input({6}, gamma).attr("groups", 3);
  expect_rstd_in(backward, 3, 3);
}

TEST(ReferenceStatistics, BatchNormTakesInverseDeviations) {
  RandomTensor random{5};
  OpCase op(OpKind::BatchNormTrainingBackward);
  op.input({4, 5, 3}, random.uniform(60, -2, 3)).input({4, 5, 3}, random.uniform(60, -1, 1));
  op.input({3}, random.uniform(3, -1, 1)).input({3}, random.uniform(3, 0.5, 2)).input({3}, random.uniform(3, 0.5, 2));
  expect_rstd_in(op, 3, 3);
}

}  // namespace
}  // namespace lamina::testing
