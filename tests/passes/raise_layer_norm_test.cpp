// LayerNorm as small ops. Every part of the formula has several spellings; each combination of them must become one op.
#include "raise_test_support.h"

namespace lamina::testing {
namespace {

constexpr double kEpsilon = 1e-3;

// Expects that no LayerNorm is raised. Most of these formulas contain an RMSNorm, which may be raised.
void expect_no_layer_norm(Writer& writer, bool runs = true) {
  const Graph graph = writer.g.finish();
  const Graph result = raised(graph);
  EXPECT_EQ(kinds_of(result).find("LayerNorm"), std::string::npos) << kinds_of(result);
  if (runs) expect_same_numbers(graph, result);
}

V kept(V a) {  // one value per row, with its reduced dims, for either keep_dims
  if (a.writer->keep_dims) return a;
  Dims shape = a.writer->shape();
  for (const int64_t axis : a.writer->axes) shape[static_cast<size_t>(wrap_axis(axis, static_cast<int>(shape.size())))] = 1;
  return a.writer->reshape(a, shape);
}

// ---- spellings

const std::vector<Unary> kMeans{
    {"mean", [](V a) { return mean(a); }},
    {"sum_times_inverse", [](V a) { return sum(a) * (1 / a.writer->row_size()); }},
    {"inverse_times_sum", [](V a) { return (1 / a.writer->row_size()) * sum(a); }},
    {"sum_over_count", [](V a) { return sum(a) / a.writer->row_size(); }},
    {"sum_of_parts", [](V a) { return sum(a * (1 / a.writer->row_size())); }},
    {"sum_of_quotients", [](V a) { return sum(a / a.writer->row_size()); }},
};

const std::vector<Binary> kDifferences{
    {"subtract", [](V a, V b) { return a - b; }},
    {"add_times_minus_one", [](V a, V b) { return a + b * -1.0; }},
    {"negative_first", [](V a, V b) { return (-1.0 * b) + a; }},
    {"add_zero_minus", [](V a, V b) { return a + (0.0 - b); }},
    {"add_over_minus_one", [](V a, V b) { return a + b / -1.0; }},
};

const std::vector<Unary> kSquares{
    {"square", [](V a) { return square(a); }},
    {"pow_2", [](V a) { return pow(a, 2); }},
    {"by_itself", [](V a) { return a * a; }},
};

// a / sqrt(b)
const std::vector<Binary> kQuotients{
    {"sqrt_divide", [](V a, V b) { return a / sqrt(b); }},
    {"pow_half_divide", [](V a, V b) { return a / pow(b, 0.5F); }},
    {"pow_minus_half", [](V a, V b) { return a * pow(b, -0.5F); }},
    {"pow_minus_half_first", [](V a, V b) { return pow(b, -0.5F) * a; }},
    {"reciprocal_of_sqrt", [](V a, V b) { return a * reciprocal(sqrt(b)); }},
    {"sqrt_of_reciprocal", [](V a, V b) { return sqrt(reciprocal(b)) * a; }},
    {"one_over_sqrt", [](V a, V b) { return a * (1.0 / sqrt(b)); }},
    {"sqrt_of_one_over", [](V a, V b) { return a * sqrt(1.0 / b); }},
    {"sqrt_to_minus_one", [](V a, V b) { return a * pow(sqrt(b), -1); }},
};

// ---- every combination of the spellings of two parts

struct Parts {
  Unary mean = kMeans[0];
  Binary difference = kDifferences[0];
  Unary square = kSquares[0];
  Binary quotient = kQuotients[0];
  std::string name() const {
    return std::string(mean.first) + "__" + difference.first + "__" + square.first + "__" + quotient.first;
  }
};

std::vector<Parts> all_parts() {
  std::vector<Parts> all;
  for (const Unary& mean : kMeans)
    for (const Unary& square : kSquares)
      for (const Binary& quotient : kQuotients) all.push_back({mean, kDifferences[0], square, quotient});
  for (size_t i = 1; i < kDifferences.size(); ++i)
    for (const Unary& square : kSquares) all.push_back({kMeans[0], kDifferences[i], square, kQuotients[0]});
  return all;
}

class RaiseLayerNorm : public ::testing::TestWithParam<Parts> {};

TEST_P(RaiseLayerNorm, WithoutAffine) {
  Writer w;
  const Parts& part = GetParam();
  const V d = part.difference.second(w.x(), part.mean.second(w.x()));
  part.quotient.second(d, part.mean.second(part.square.second(d)) + kEpsilon);
  const Graph graph = expect_raised(w, "LayerNorm");
  const Op& op = graph.ops()[0];
  EXPECT_EQ(op.attribute<float>("epsilon"), static_cast<float>(kEpsilon));
  EXPECT_EQ(op.attribute<int64_t>("begin_norm_axis"), 1);
  EXPECT_FALSE(op.attribute<bool>("use_affine"));
  EXPECT_EQ(op.raised_by, "layer_norm");
}

TEST_P(RaiseLayerNorm, WithAffine) {
  Writer w;
  const Parts& part = GetParam();
  const V d = part.difference.second(w.x(), part.mean.second(w.x()));
  w.beta() + w.gamma() * part.quotient.second(d, kEpsilon + part.mean.second(part.square.second(d)));
  const Graph graph = expect_raised(w, "LayerNorm");
  EXPECT_TRUE(graph.ops()[0].attribute<bool>("use_affine"));
  EXPECT_EQ(graph.ops()[0].raised_by, "layer_norm.affine");
  EXPECT_EQ(graph.inputs().size(), 3U);  // epsilon and the counts are constants of the compiled code
}

TEST_P(RaiseLayerNorm, WithEveryPartComputedAgain) {
  Writer w;
  const Parts& part = GetParam();
  const auto d = [&] { return part.difference.second(w.x(), part.mean.second(w.x())); };
  part.quotient.second(d(), part.mean.second(part.square.second(d())) + kEpsilon);
  expect_raised(w, "LayerNorm");
}

TEST_P(RaiseLayerNorm, WithReshapesInsteadOfKeepDims) {
  Writer w({2, 3, 8});
  w.keep_dims = false;
  const Parts& part = GetParam();
  const V d = part.difference.second(w.x(), kept(part.mean.second(w.x())));
  part.quotient.second(d, kept(part.mean.second(part.square.second(d)) + kEpsilon));
  expect_raised(w, "LayerNorm");
}

TEST_P(RaiseLayerNorm, OverSeveralAxes) {
  Writer w({2, 3, 8});
  w.axes = {2, -2};
  const Parts& part = GetParam();
  const V d = part.difference.second(w.x(), part.mean.second(w.x()));
  part.quotient.second(d, part.mean.second(part.square.second(d)) + kEpsilon) * w.gamma() + w.beta();
  const Graph graph = expect_raised(w, "LayerNorm");
  EXPECT_EQ(graph.ops()[0].attribute<int64_t>("begin_norm_axis"), 1);
}

INSTANTIATE_TEST_SUITE_P(Spellings, RaiseLayerNorm, ::testing::ValuesIn(all_parts()),
                         [](const auto& test) { return test.param.name(); });

// ---- spellings that change the formula's order

using Formula = std::pair<const char*, std::function<void(Writer&)>>;

V deviation(Writer& w) { return sqrt(mean(square(w.x() - mean(w.x()))) + kEpsilon); }
V rstd(Writer& w) { return pow(mean(square(w.x() - mean(w.x()))) + kEpsilon, -0.5F); }

const std::vector<Formula> kFormulas{
    {"squared_difference",
     [](Writer& w) {
       const V m = mean(w.x());
       (w.x() - m) / sqrt(mean(w.op(OpKind::SquaredDifference, {w.x(), m})) + kEpsilon);
     }},
    {"squared_difference_exchanged",
     [](Writer& w) {
       const V m = mean(w.x());
       (w.x() - m) / sqrt(mean(w.op(OpKind::SquaredDifference, {m, w.x()})) + kEpsilon);
     }},
    {"mean_of_squares_minus_square_of_mean",
     [](Writer& w) {
       const V m = mean(w.x());
       (w.x() - m) / sqrt((mean(square(w.x())) - square(m)) + kEpsilon);
     }},
    {"mean_of_squares_minus_product_of_means",
     [](Writer& w) {
       const V m = mean(w.x());
       (w.x() - m) * reciprocal(sqrt((mean(w.x() * w.x()) - m * m) + kEpsilon));
     }},
    {"scaled_before_divided", [](Writer& w) { ((w.x() - mean(w.x())) * w.gamma()) / deviation(w) + w.beta(); }},
    {"scaled_before_multiplied", [](Writer& w) { ((w.x() - mean(w.x())) * w.gamma()) * rstd(w) + w.beta(); }},
    {"gamma_times_rstd", [](Writer& w) { (w.x() - mean(w.x())) * (w.gamma() * rstd(w)) + w.beta(); }},
    {"gamma_over_deviation", [](Writer& w) { (w.x() - mean(w.x())) * (w.gamma() / deviation(w)) + w.beta(); }},
    {"batch_norm_style",
     [](Writer& w) {
       const V scale = rstd(w) * w.gamma();
       w.x() * scale + (w.beta() - mean(w.x()) * scale);
     }},
    {"batch_norm_style_over_deviation",
     [](Writer& w) {
       const V scale = w.gamma() / deviation(w);
       (w.beta() - scale * mean(w.x())) + scale* w.x();
     }},
    {"batch_norm_style_shift_last",
     [](Writer& w) {
       const V scale = rstd(w) * w.gamma();
       (w.x() * scale - mean(w.x()) * scale) + w.beta();
     }},
    {"batch_norm_style_without_affine",
     [](Writer& w) {
       const V r = rstd(w);
       w.x() * r - mean(w.x()) * r;
     }},
    {"bias_add", [](Writer& w) { w.op(OpKind::BiasAdd, {(w.x() - mean(w.x())) / deviation(w) * w.gamma(), w.beta()}); }},
    {"epsilon_per_row",
     [](Writer& w) {
       (w.x() - mean(w.x())) / sqrt(mean(square(w.x() - mean(w.x()))) + w.number(kEpsilon, {w.shape()[0], 1}));
     }},
    {"epsilon_of_one_element",
     [](Writer& w) { (w.x() - mean(w.x())) / sqrt(w.number(kEpsilon, {1}) + mean(square(w.x() - mean(w.x())))); }},
};

class RaiseLayerNormFormula : public ::testing::TestWithParam<Formula> {};

TEST_P(RaiseLayerNormFormula, BecomesOneOp) {
  Writer w;
  GetParam().second(w);
  expect_raised(w, "LayerNorm");
}

TEST_P(RaiseLayerNormFormula, StaysWhenTheAxesAreNotTheLast) {
  Writer w({8, 8});
  w.axes = {0};
  GetParam().second(w);
  expect_unchanged(w);
}

TEST_P(RaiseLayerNormFormula, StaysWhenARowMeetsTheWrongAxis) {
  Writer w({8, 8});  // without keep_dims, broadcasting reads a per-row value as a per-column value
  w.keep_dims = false;
  GetParam().second(w);
  expect_unchanged(w);
}

INSTANTIATE_TEST_SUITE_P(Spellings, RaiseLayerNormFormula, ::testing::ValuesIn(kFormulas),
                         [](const auto& test) { return std::string(test.param.first); });

// ---- types

TEST(RaiseLayerNormTypes, SixteenBitDataComputedInF32) {
  // x bf16 ──> TypeCast f32 ──> ... ──> TypeCast bf16 ──> Multiply gamma bf16 ──> Add beta bf16
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  const V d = x - mean(x);
  const V normalized = w.cast(d / sqrt(mean(square(d)) + kEpsilon), bf16);
  w.compute_in(bf16);
  normalized* w.gamma() + w.beta();
  const Graph graph = expect_raised(w, "LayerNorm", 2e-2);
  EXPECT_EQ(graph.tensor(graph.ops()[0].inputs[0]).dtype, bf16);
  EXPECT_EQ(graph.tensor(graph.ops()[0].outputs[0]).dtype, bf16);
}

TEST(RaiseLayerNormTypes, CastsAtTheBorderStayWhereTheyAre) {
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  const V d = x - mean(x);
  w.cast(d / sqrt(mean(square(d)) + kEpsilon) * w.gamma() + w.beta(), bf16);
  expect_raised(w, "TypeCast LayerNorm TypeCast", 2e-2);
}

TEST(RaiseLayerNormTypes, EpsilonMayBeCast) {
  Writer w;
  const V epsilon = w.cast({&w, w.g.number(kEpsilon, f64)}, f32);
  const V d = w.x() - mean(w.x());
  d / sqrt(mean(square(d)) + epsilon);
  expect_raised(w, "LayerNorm");
}

TEST(RaiseLayerNormTypes, GammaMayHaveTheTypeOfTheData) {
  Writer w({4, 8}, f16);
  const V d = w.x() - mean(w.x());
  d / sqrt(mean(square(d)) + kEpsilon) * w.gamma() + w.beta();
  expect_raised(w, "LayerNorm", 2e-2);
}

TEST(RaiseLayerNormTypes, ANarrowedInputIsAnotherTensor) {
  Writer w;
  const V narrow = w.cast(w.cast(w.x(), bf16), f32);
  const V d = w.x() - mean(narrow);
  d / sqrt(mean(square(d)) + kEpsilon);
  expect_no_layer_norm(w);
}

// ---- statistics

struct Statistics {
  Writer w;
  V m, v, d, normalized;
  Statistics() : w({4, 8}), m(w.x()), v(m), d(m), normalized(m) {
    w.keep_dims = false;
    m = mean(w.x());
    d = w.x() - w.reshape(m, {4, 1});
    v = mean(square(d));
    normalized = d / w.reshape(sqrt(v + kEpsilon), {4, 1});
  }
};

TEST(RaiseLayerNormStatistics, BothMayBeGraphOutputs) {
  Statistics s;
  s.w.g.output(s.m.id);
  s.w.g.output(s.v.id);
  const Graph graph = expect_raised(s.w, "LayerNorm End End");
  EXPECT_TRUE(graph.ops()[0].attribute<bool>("keep_stats"));
  EXPECT_EQ(graph.tensor(graph.output_value(graph.ops()[0], "mean")).id, s.m.id);
  EXPECT_EQ(graph.tensor(graph.output_value(graph.ops()[0], "variance")).id, s.v.id);
}

TEST(RaiseLayerNormStatistics, BothMayBeReadBetweenTheOps) {
  Statistics s;
  (s.m + s.v);
  s.normalized* s.w.gamma() + s.w.beta();
  const Graph graph = expect_raised(s.w, "LayerNorm Add");
  EXPECT_EQ(graph.ops()[0].outputs.size(), 3U);
}

TEST(RaiseLayerNormStatistics, OneAloneIsNoOutputOfTheOp) {
  Statistics s;
  s.w.g.output(s.m.id);
  expect_no_layer_norm(s.w);
}

TEST(RaiseLayerNormStatistics, GammaThatIsMadeOfThemKeepsThemApart) {
  Statistics s;  // gamma depends on the mean, so one op cannot compute both
  const V gamma = s.w.reshape(s.w.op(OpKind::Concat, {s.m, s.v}, {{"axis", int64_t{0}}}), {8});
  s.normalized* gamma + s.w.beta();
  const Graph graph = s.w.g.finish();
  EXPECT_EQ(raised(graph).ops().size(), 1 + 2 + 2U);  // the norm without gamma and beta, Concat, reshape, Multiply, Add
  expect_same_numbers(graph, raised(graph));
}

// ---- counterparts that must not match: one condition broken each

struct Twin {
  const char* name;
  std::function<void(Writer&)> write;
};

const std::vector<Twin> kTwins{
    {"epsilon_outside_the_root",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / (sqrt(mean(square(d))) + kEpsilon);
     }},
    {"epsilon_inside_the_square",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d + kEpsilon)));
     }},
    {"no_epsilon",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)));
     }},
    {"negative_epsilon",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) + -1e-3);
     }},
    {"epsilon_not_known",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) + V{&w, w.g.constant(f32, {})});
     }},
    {"epsilon_subtracted",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) - kEpsilon);
     }},
    {"variance_by_n_minus_one",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(sum(square(d)) / (w.row_size() - 1) + kEpsilon);
     }},
    {"count_of_another_size",
     [](Writer& w) {
       const V d = w.x() - sum(w.x()) * (1.0 / 4);
       d / sqrt(mean(square(d)) + kEpsilon);
     }},
    {"sum_without_count",
     [](Writer& w) {
       const V d = w.x() - sum(w.x());
       d / sqrt(mean(square(d)) + kEpsilon);
     }},
    {"variance_of_something_else",
     [](Writer& w) {
       const V other = w.input(w.shape());
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(other - mean(other))) + kEpsilon);
     }},
    {"mean_of_something_else",
     [](Writer& w) {
       const V d = w.x() - mean(w.input(w.shape()));
       d / sqrt(mean(square(d)) + kEpsilon);
     }},
    {"mean_and_variance_over_different_axes",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       w.axes = {0};
       d / sqrt(mean(square(d)) + kEpsilon);
     }},
    {"cube_instead_of_square",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(pow(d, 3)) + kEpsilon);
     }},
    {"cube_root",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d* pow(mean(square(d)) + kEpsilon, -1.0F / 3);
     }},
    {"multiplied_by_the_root",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d* sqrt(mean(square(d)) + kEpsilon);
     }},
    {"mean_subtracted_from_the_wrong_side",
     [](Writer& w) {
       const V d = mean(w.x()) - w.x();
       d / sqrt(mean(square(w.x())) + kEpsilon);
     }},
    {"difference_is_a_graph_output",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) + kEpsilon);
       w.g.output(d.id);
     }},
    {"difference_is_used_elsewhere",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) + kEpsilon);
       exp(d);
     }},
    {"root_is_used_elsewhere",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       const V s = sqrt(mean(square(d)) + kEpsilon);
       d / s;
       exp(s);
     }},
    {"mean_with_trailing_ones_is_used_elsewhere",
     [](Writer& w) {
       const V m = mean(w.x());
       const V d = w.x() - m;
       d / sqrt(mean(square(d)) + kEpsilon);
       exp(m);
     }},
    {"epsilon_broadcasts_to_a_higher_rank",
     [](Writer& w) {
       const V d = w.x() - mean(w.x());
       d / sqrt(mean(square(d)) + w.number(kEpsilon, {1, 1, 1}));
     }},
};

class RaiseLayerNormTwin : public ::testing::TestWithParam<Twin> {};
TEST_P(RaiseLayerNormTwin, IsNoLayerNorm) {
  Writer w;
  GetParam().write(w);
  expect_no_layer_norm(w);
}
INSTANTIATE_TEST_SUITE_P(BrokenConditions, RaiseLayerNormTwin, ::testing::ValuesIn(kTwins),
                         [](const auto& test) { return std::string(test.param.name); });

TEST(RaiseLayerNormTwins, ANormThatIsReadTwiceIsRaisedWithoutItsAffine) {
  Writer w;
  const V d = w.x() - mean(w.x());
  const V normalized = d / sqrt(mean(square(d)) + kEpsilon);
  normalized* w.gamma() + w.beta();
  exp(normalized);
  expect_raised(w, "LayerNorm Multiply Add Exp");
}

TEST(RaiseLayerNormTwins, GammaAlongTheRowsIsMultipliedAfterwards) {
  Writer w;
  const V d = w.x() - mean(w.x());
  d / sqrt(mean(square(d)) + kEpsilon) * w.input({4, 1}) + w.input({4, 1});
  expect_raised(w, "LayerNorm Multiply Add");
}

TEST(RaiseLayerNormTwins, GammaThatIsTheNormItselfIsNoParameter) {
  Writer w({8});  // with one row, every shape broadcasts
  const V d = w.x() - mean(w.x());
  const V normalized = d / sqrt(mean(square(d)) + kEpsilon);
  normalized* normalized + w.beta();
  expect_raised(w, "LayerNorm Multiply Add");
}

TEST(RaiseLayerNormTwins, UnknownRowsCannotBeCounted) {
  Writer w({4, kUnknownDim});
  const V d = w.x() - sum(w.x()) * 0.125;
  d / sqrt(mean(square(d)) + kEpsilon);
  expect_no_layer_norm(w, false);
}

TEST(RaiseLayerNormTwins, UnknownRowsMayBeAveraged) {
  Writer w({kUnknownDim, kUnknownDim});
  const V d = w.x() - mean(w.x());
  d / sqrt(mean(square(d)) + kEpsilon);
  EXPECT_EQ(kinds_of(raised(w.g.finish())), "LayerNorm");
}

}  // namespace
}  // namespace lamina::testing
