// LayerNormGrad as in its document, with the square root and the epsilon, which the document omits.
#include "graph_op_case.h"

namespace graph_op_test {
namespace {

op grad(const Problem& p) { return op(0, op::kind::LayerNormGrad, "grad").set_attr(op::attr::epsilon, p.epsilon); }

// [A1..Ai] as [A1..Ai, 1, .., 1].
TypedTensor with_ones(const TypedTensor& statistic, size_t rank) {
  Dims shape = statistic.shape;
  shape.resize(rank, 1);
  return TypedTensor(statistic.dtype, shape, statistic.values());
}

void run_grad(const op& norm, Problem& p, const std::vector<TypedTensor*>& outputs) {
  TypedTensor variance = with_ones(p.variance, p.shape.size()), mean = with_ones(p.mean, p.shape.size());
  run_op(norm, {&p.diff_dst, &p.src, &variance, &mean, &p.gamma}, outputs);
}

TEST(LayerNormGradOp, NormalisesAsManyAxesAsGammaHas) {
  for (size_t axes = 1; axes <= 4; ++axes) {
    Problem p({3, 2, 7, 33}, axes);
    run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
    p.check();
  }
}

TEST(LayerNormGradOp, StatisticsMayBeAnyTypeThatIsWideEnough) {
  const std::vector<std::pair<DataType, std::vector<DataType>>> allowed = {
      {DataType::f32, {DataType::f32}},
      {DataType::f16, {DataType::f16, DataType::bf16, DataType::f32}},
      {DataType::bf16, {DataType::bf16, DataType::f16, DataType::f32}}};
  for (const auto& [data, statistics] : allowed)
    for (const DataType stats : statistics) {
      SCOPED_TRACE(::testing::Message() << name_of(data) << " with statistics " << name_of(stats));
      Problem p({5, 7, 33}, 1, data, DataType::f32, stats);
      run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      p.check();
    }
}

TEST(LayerNormGradOp, StatisticsNarrowerThanXAreRefused) {
  Problem p({5, 7, 33}, 1, DataType::f32, DataType::f32, DataType::bf16);
  try {
    run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
    FAIL();
  } catch (const lamina::error& error) {
    EXPECT_EQ(error.status, lamina_invalid_data_type);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("mean and variance at least as wide as x"));
  }
}

TEST(LayerNormGradOp, GammaMayHaveAnyOfTheThreeTypes) {
  for (const DataType data : {DataType::f32, DataType::f16, DataType::bf16})
    for (const DataType gamma : {DataType::f32, DataType::f16, DataType::bf16}) {
      SCOPED_TRACE(::testing::Message() << name_of(data) << " with gamma " << name_of(gamma));
      Problem p({5, 7, 33}, 1, data, gamma, DataType::f32);
      run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      p.check();
      EXPECT_EQ(p.diff_gamma.dtype, gamma) << "the gradients have the type of gamma";
    }
}

TEST(LayerNormGradOp, OutputsFollowTheMask) {
  Problem all({5, 7, 33});
  run_grad(grad(all), all, {&all.diff_src, &all.diff_gamma, &all.diff_beta});
  for (int64_t mask = 1; mask < 8; ++mask) {
    SCOPED_TRACE(mask);
    Problem p({5, 7, 33});
    std::vector<TypedTensor*> outputs;
    if ((mask & 1) != 0) outputs.push_back(&p.diff_src);
    if ((mask & 2) != 0) outputs.push_back(&p.diff_gamma);
    if ((mask & 4) != 0) outputs.push_back(&p.diff_beta);
    run_grad(grad(p).set_attr(op::attr::output_mask, std::vector<int64_t>{mask & 1, mask >> 1 & 1, mask >> 2 & 1}), p, outputs);
    if ((mask & 1) != 0) expect_same(p.diff_src, all.diff_src, "pd_x");
    if ((mask & 2) != 0) expect_same(p.diff_gamma, all.diff_gamma, "pd_gamma");
    if ((mask & 4) != 0) expect_same(p.diff_beta, all.diff_beta, "pd_beta");
  }
}

TEST(LayerNormGradOp, TheSquareRootIsMeant) {
  Problem p({1, 2});
  p.variance.set(0, 4);
  p.epsilon = 1e-10f;
  run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  const double expected = p.diff_dst.at(0) * (p.src.at(0) - p.mean.at(0)) / 2;
  EXPECT_NEAR(p.diff_gamma.at(0), expected, 1e-6)
      << "1 / (variance + epsilon), as the document prints it, would give half of that";
}

TEST(LayerNormGradOp, EpsilonIsTheCallers) {
  Problem p({5, 7, 33});
  p.epsilon = 0.5f;
  run_grad(grad(p), p, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  p.check();
}

}  // namespace
}  // namespace graph_op_test
