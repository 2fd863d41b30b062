// LayerNormBackward as in its document: attributes, indexed inputs and outputs, type combinations, optional ports.
#include "graph_op_case.h"

namespace graph_op_test {
namespace {

op backward(const Problem& p) { return op(0, op::kind::LayerNormBackward, "backward").set_attr(op::attr::epsilon, p.epsilon); }

TEST(LayerNormBackwardOp, TakesItsThreeRowsOfTypes) {
  const std::pair<DataType, DataType> rows[] = {{DataType::f32, DataType::f32},
                                                {DataType::bf16, DataType::f32},
                                                {DataType::bf16, DataType::bf16},
                                                {DataType::f16, DataType::f32}};
  for (const auto& [data, small] : rows) {
    SCOPED_TRACE(::testing::Message() << name_of(data) << " with " << name_of(small));
    Problem p({5, 7, 33}, 1, data, small);
    run_op(backward(p), {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma, &p.beta},
           {&p.diff_src, &p.diff_gamma, &p.diff_beta});
    p.check();
  }
}

TEST(LayerNormBackwardOp, RefusesTypesOutsideItsRows) {
  const std::pair<DataType, DataType> rows[] = {
      {DataType::f32, DataType::bf16}, {DataType::f16, DataType::bf16}, {DataType::s8, DataType::f32}};
  for (const auto& [data, small] : rows) {
    Problem p({5, 7, 33}, 1, data, small);
    try {
      run_op(backward(p), {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      FAIL() << name_of(data) << " with " << name_of(small) << " was taken";
    } catch (const lamina::error& error) {
      EXPECT_EQ(error.status, lamina_invalid_data_type);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("LayerNormBackward \"backward\""));
    }
  }
}

TEST(LayerNormBackwardOp, TakesEveryLegalCombinationOfGammaBetaAndTheirGradients) {
  Problem all({5, 7, 33});
  run_op(backward(all), {&all.src, &all.diff_dst, &all.mean, &all.variance, &all.gamma, &all.beta},
         {&all.diff_src, &all.diff_gamma, &all.diff_beta});
  all.check();
  for (const bool with_beta : {false, true})
    for (const bool gamma_gradient : {false, true})
      for (const bool beta_gradient : {false, true}) {
        Problem p({5, 7, 33});
        run_op(backward(p), {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma, with_beta ? &p.beta : nullptr},
               {&p.diff_src, gamma_gradient ? &p.diff_gamma : nullptr, beta_gradient ? &p.diff_beta : nullptr});
        expect_same(p.diff_src, all.diff_src, "diff_src");
        if (gamma_gradient) expect_same(p.diff_gamma, all.diff_gamma, "diff_gamma");
        if (beta_gradient) expect_same(p.diff_beta, all.diff_beta, "diff_beta");
      }
}

TEST(LayerNormBackwardOp, WithoutAffineThereIsNeitherGammaNorItsGradient) {
  Problem p({5, 7, 33});
  run_op(backward(p).set_attr(op::attr::use_affine, false), {&p.src, &p.diff_dst, &p.mean, &p.variance}, {&p.diff_src});
  p.check(false);
}

TEST(LayerNormBackwardOp, AffineWithoutGammaIsRefused) {
  Problem p({5, 7, 33});
  try {
    run_op(backward(p), {&p.src, &p.diff_dst, &p.mean, &p.variance}, {&p.diff_src});
    FAIL();
  } catch (const lamina::error& error) {
    EXPECT_EQ(error.status, lamina_invalid_graph_op);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("input gamma (port 4) is missing"));
  }
}

TEST(LayerNormBackwardOp, NormalisesFromBeginNormAxisOn) {
  for (const int64_t axis : {int64_t{1}, int64_t{-2}, int64_t{0}, int64_t{2}, int64_t{-3}}) {
    const size_t axes = static_cast<size_t>(axis < 0 ? -axis : 3 - axis);
    Problem p({5, 7, 33}, axes);
    run_op(backward(p).set_attr(op::attr::begin_norm_axis, axis), {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma},
           {&p.diff_src, &p.diff_gamma, &p.diff_beta});
    p.check();
  }
}

TEST(LayerNormBackwardOp, EpsilonIsTheCallers) {
  Problem p({5, 7, 33});
  p.epsilon = 0.25f;
  run_op(backward(p), {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  p.check();
}

TEST(LayerNormBackwardOp, AttributesOutOfRangeAreRefused) {
  Problem p({5, 7, 33});
  const std::pair<op, const char*> bad[] = {{backward(p).set_attr(op::attr::begin_norm_axis, 3), "begin_norm_axis"},
                                            {backward(p).set_attr(op::attr::begin_norm_axis, -4), "begin_norm_axis"},
                                            {backward(p).set_attr(op::attr::epsilon, 0.0f), "epsilon"},
                                            {backward(p).set_attr(op::attr::epsilon, -1.0f), "epsilon"}};
  for (const auto& [norm, attribute] : bad) {
    try {
      run_op(norm, {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
      ADD_FAILURE() << attribute;
    } catch (const lamina::error& error) {
      EXPECT_THAT(error.what(), ::testing::HasSubstr(attribute));
    }
  }
}

}  // namespace
}  // namespace graph_op_test
