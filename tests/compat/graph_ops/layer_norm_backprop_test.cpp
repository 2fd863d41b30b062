// LayerNormBackprop-1 as in its document, with the incoming gradient, which the document omits.
#include "graph_op_case.h"

namespace graph_op_test {
namespace {

op backprop() { return op(0, op::kind::LayerNormBackprop, "backprop").set_attr(op::attr::epsilon, 1e-5f); }

TEST(LayerNormBackpropOp, TakesStatisticsOrComputesThem) {
  for (const bool use_stats : {true, false}) {
    Problem p({5, 7, 33});
    std::vector<TypedTensor*> inputs = {&p.src, &p.diff_dst, &p.gamma, &p.beta};
    if (use_stats) inputs.insert(inputs.end(), {&p.mean, &p.variance});
    run_op(backprop().set_attr(op::attr::use_stats, use_stats), inputs, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
    p.check(true, use_stats);
  }
}

TEST(LayerNormBackpropOp, WithoutAffineThereIsNeitherGammaNorBeta) {
  for (const bool use_stats : {true, false}) {
    Problem p({5, 7, 33});
    std::vector<TypedTensor*> inputs = {&p.src, &p.diff_dst};
    if (use_stats) inputs.insert(inputs.end(), {&p.mean, &p.variance});
    run_op(backprop().set_attr(op::attr::use_stats, use_stats).set_attr(op::attr::use_affine, false), inputs, {&p.diff_src});
    p.check(false, use_stats);
  }
}

TEST(LayerNormBackpropOp, TakesEveryFloatingType) {
  for (const DataType type : {DataType::f32, DataType::f64, DataType::bf16, DataType::f16}) {
    for (const bool use_stats : {true, false}) {
      SCOPED_TRACE(name_of(type));
      Problem p({5, 7, 33}, 1, type, type);
      std::vector<TypedTensor*> inputs = {&p.src, &p.diff_dst, &p.gamma, &p.beta};
      if (use_stats) inputs.insert(inputs.end(), {&p.mean, &p.variance});
      run_op(backprop().set_attr(op::attr::use_stats, use_stats), inputs, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      p.check(true, use_stats);
    }
  }
}

TEST(LayerNormBackpropOp, AnIntegerInputIsComputedInF32) {
  for (const DataType type : {DataType::s8, DataType::u8, DataType::s32, DataType::s64}) {
    for (const bool use_stats : {true, false}) {
      SCOPED_TRACE(name_of(type));
      Problem p({5, 7, 33});
      p.src = TypedTensor(type, p.shape, RandomTensor(1).uniform(5 * 7 * 33, type == DataType::u8 ? 0 : -20, 20));
      std::vector<TypedTensor*> inputs = {&p.src, &p.diff_dst, &p.gamma, &p.beta};
      if (use_stats) inputs.insert(inputs.end(), {&p.mean, &p.variance});
      run_op(backprop().set_attr(op::attr::use_stats, use_stats), inputs, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      p.check(true, use_stats);
    }
  }
}

TEST(LayerNormBackpropOp, GradientsOfGammaAndBetaAreOptional) {
  Problem all({5, 7, 33}), p({5, 7, 33});
  run_op(backprop(), {&all.src, &all.diff_dst, &all.gamma, &all.beta, &all.mean, &all.variance},
         {&all.diff_src, &all.diff_gamma, &all.diff_beta});
  run_op(backprop(), {&p.src, &p.diff_dst, &p.gamma, &p.beta, &p.mean, &p.variance}, {&p.diff_src});
  expect_same(p.diff_src, all.diff_src, "input_delta");
  run_op(backprop(), {&p.src, &p.diff_dst, &p.gamma, &p.beta, &p.mean, &p.variance}, {&p.diff_src, nullptr, &p.diff_beta});
  expect_same(p.diff_beta, all.diff_beta, "beta_delta");
}

TEST(LayerNormBackpropOp, NormalisesFromBeginNormAxisOn) {
  Problem p({5, 7, 33}, 2);
  run_op(backprop().set_attr(op::attr::begin_norm_axis, 1), {&p.src, &p.diff_dst, &p.gamma, &p.beta, &p.mean, &p.variance},
         {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  p.check();
}

}  // namespace
}  // namespace graph_op_test
