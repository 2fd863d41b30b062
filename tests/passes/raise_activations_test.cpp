// GELU (tanh form) and Swish as small ops, with counterparts in which one condition is broken.
#include <numbers>

#include "passes/partition.h"
#include "raise_test_support.h"

namespace lamina::testing {
namespace {

struct Case {
  const char* name;
  std::function<void(Writer&)> write;
};
const auto kName = [](const auto& test) { return std::string(test.param.name); };

// ---- GELU

constexpr double kCubic = 0.044715;
const double kSlope = std::sqrt(2 / std::numbers::pi);

// slope * (x + 0.044715 x^3)
using Polynomial = std::pair<const char*, std::function<V(V, double)>>;
const std::vector<Polynomial> kPolynomials{
    {"cube_by_pow", [](V x, double s) { return (x + pow(x, 3) * kCubic) * s; }},
    {"cube_by_products", [](V x, double s) { return s * (kCubic * (x * x * x) + x); }},
    {"cube_by_square", [](V x, double s) { return (x + kCubic * (x * square(x))) * s; }},
    {"square_times_x", [](V x, double s) { return (x + (square(x) * kCubic) * x) * s; }},
    {"factored", [](V x, double s) { return s * (x * (1.0 + kCubic * square(x))); }},
    {"factored_with_slope", [](V x, double s) { return (x * s) * (1.0 + kCubic * (x * x)); }},
    {"multiplied_out", [](V x, double s) { return x * (pow(x, 2) * (kCubic * s) + s); }},
    {"sum_of_terms", [](V x, double s) { return x * s + (kCubic * s) * pow(x, 3); }},
    {"slope_by_division", [](V x, double s) { return (x + pow(x, 3) * kCubic) / (1 / s); }},
};

// x, tanh -> x / 2 * (1 + tanh)
const std::vector<Binary> kGates{
    {"half_last", [](V x, V t) { return (x * (t + 1.0)) * 0.5; }},
    {"half_with_x", [](V x, V t) { return (0.5 * x) * (1.0 + t); }},
    {"half_with_gate", [](V x, V t) { return x * (0.5 * (1.0 + t)); }},
    {"half_of_tanh", [](V x, V t) { return x * (t * 0.5 + 0.5); }},
    {"multiplied_out", [](V x, V t) { return x * 0.5 + (x * 0.5) * t; }},
    {"sum_halved", [](V x, V t) { return (x + x * t) * 0.5; }},
    {"divided_by_two", [](V x, V t) { return (x * (1.0 + t)) / 2.0; }},
    {"x_divided_by_two", [](V x, V t) { return (x / 2.0) * (1.0 + t); }},
};

const std::vector<Binary> kLogistics{
    {"sigmoid", [](V x, V z) { return x * sigmoid(z); }},
    {"one_over_one_plus_exp", [](V x, V z) { return x * (1.0 / (1.0 + exp(-z))); }},
    {"reciprocal", [](V x, V z) { return reciprocal(exp(-z) + 1.0) * x; }},
    {"divided", [](V x, V z) { return x / (1.0 + exp(-z)); }},
};

struct Gelu {
  Polynomial polynomial;
  Binary gate;
  double slope;
  std::string name() const { return std::string(polynomial.first) + "__" + gate.first; }
};

std::vector<Gelu> all_gelus() {
  std::vector<Gelu> all;
  for (const Polynomial& polynomial : kPolynomials) {
    for (const Binary& gate : kGates)
      all.push_back({polynomial, {gate.first, [gate](V x, V u) { return gate.second(x, tanh(u)); }}, kSlope});
    for (const Binary& gate : kLogistics) all.push_back({polynomial, gate, 2 * kSlope});
  }
  return all;
}

class RaiseGelu : public ::testing::TestWithParam<Gelu> {};
TEST_P(RaiseGelu, BecomesOneOp) {
  Writer w;
  GetParam().gate.second(w.x(), GetParam().polynomial.second(w.x(), GetParam().slope));
  EXPECT_EQ(expect_raised(w, "GELU").ops()[0].attribute<std::string>("mode"), "gelu_tanh");
}
TEST_P(RaiseGelu, NotWithAnotherSlope) {
  Writer w;
  GetParam().gate.second(w.x(), GetParam().polynomial.second(w.x(), 1.01 * GetParam().slope));
  expect_unchanged(w);
}
TEST_P(RaiseGelu, NotWithThePolynomialOfAnotherTensor) {
  Writer w;
  GetParam().gate.second(w.x(), GetParam().polynomial.second(w.input(w.shape()), GetParam().slope));
  expect_unchanged(w);
}
TEST_P(RaiseGelu, NotWhenThePolynomialIsUsedElsewhere) {
  Writer w;
  const V u = GetParam().polynomial.second(w.x(), GetParam().slope);
  GetParam().gate.second(w.x(), u);
  w.g.output(u.id);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(Spellings, RaiseGelu, ::testing::ValuesIn(all_gelus()),
                         [](const auto& test) { return test.param.name(); });

TEST(RaiseGeluForms, ConstantsOfSixDigitsAreTheConstants) {
  Writer w;
  const V x = w.x();
  (0.5 * x) * (1.0 + tanh(0.797885 * (x + 0.044715 * pow(x, 3))));
  expect_raised(w, "GELU", 1e-5);
}
TEST(RaiseGeluForms, SixteenBitDataComputedInF32) {
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  w.cast((0.5 * x) * (1.0 + tanh(kSlope * (x + kCubic * pow(x, 3)))), bf16);
  expect_raised(w, "TypeCast GELU TypeCast", 2e-2);
}
TEST(RaiseGeluForms, ConstantsOfTheNarrowType) {
  Writer w({4, 8}, bf16);
  const V x = w.x();
  (0.5 * x) * (1.0 + tanh(kSlope * (x + kCubic * pow(x, 3))));
  expect_raised(w, "GELU", 2e-2);
}
TEST(RaiseGeluForms, ConstantsThatAddADimStay) {
  Writer w;
  const V x = w.x();
  (w.number(0.5, {1, 1, 1}) * x) * (1.0 + tanh(kSlope * (x + kCubic * pow(x, 3))));
  expect_unchanged(w);
}

// ---- Swish

struct SwishCase {
  const char* name;
  double alpha;
  std::function<void(Writer&)> write;
};

const std::vector<SwishCase> kSwishes{
    {"sigmoid", 1, [](Writer& w) { w.x() * sigmoid(w.x()); }},
    {"sigmoid_first", 1, [](Writer& w) { sigmoid(w.x()) * w.x(); }},
    {"divided_by_one_plus_exp", 1, [](Writer& w) { w.x() / (1.0 + exp(-w.x())); }},
    {"divided_by_exp_plus_one", 1, [](Writer& w) { w.x() / (exp(0.0 - w.x()) + 1.0); }},
    {"times_one_over", 1, [](Writer& w) { w.x() * (1.0 / (1.0 + exp(-w.x()))); }},
    {"times_reciprocal", 1, [](Writer& w) { reciprocal(1.0 + exp(-w.x())) * w.x(); }},
    {"times_pow_minus_one", 1, [](Writer& w) { w.x() * pow(1.0 + exp(-w.x()), -1); }},
    {"exp_over_one_plus_exp", 1,
     [](Writer& w) {
       const V e = exp(w.x());
       w.x() * (e / (e + 1.0));
     }},
    {"product_over_one_plus_exp", 1, [](Writer& w) { (w.x() * exp(w.x())) / (1.0 + exp(w.x())); }},
    {"tanh_half_last", 1, [](Writer& w) { (w.x() * (1.0 + tanh(w.x() * 0.5))) * 0.5; }},
    {"tanh_half_with_x", 1, [](Writer& w) { (w.x() * 0.5) * (tanh(w.x() / 2.0) + 1.0); }},
    {"tanh_half_with_gate", 1, [](Writer& w) { w.x() * (0.5 * (1.0 + tanh(0.5 * w.x()))); }},
    {"tanh_multiplied_out", 1, [](Writer& w) { w.x() * (0.5 * tanh(0.5 * w.x()) + 0.5); }},
    {"scaled_sigmoid", 1.702, [](Writer& w) { w.x() * sigmoid(1.702 * w.x()); }},
    {"scaled_by_division", 2, [](Writer& w) { w.x() * sigmoid(w.x() / 0.5); }},
    {"scaled_exp", 1.702, [](Writer& w) { w.x() / (1.0 + exp(w.x() * -1.702)); }},
    {"scaled_tanh", 1.5, [](Writer& w) { w.x() * (0.5 * (1.0 + tanh(0.75 * w.x()))); }},
    {"negative", -1, [](Writer& w) { w.x() * sigmoid(-w.x()); }},
};

class RaiseSwish : public ::testing::TestWithParam<SwishCase> {};
TEST_P(RaiseSwish, BecomesOneOp) {
  Writer w;
  GetParam().write(w);
  EXPECT_EQ(expect_raised(w, "Swish").ops()[0].attribute<float>("alpha"), static_cast<float>(GetParam().alpha));
}
INSTANTIATE_TEST_SUITE_P(Spellings, RaiseSwish, ::testing::ValuesIn(kSwishes),
                         [](const auto& test) { return std::string(test.param.name); });

const std::vector<Case> kNoSwishes{
    {"sigmoid_of_something_else", [](Writer& w) { w.input(w.shape()) * sigmoid(w.x()); }},
    {"sigmoid_is_an_output",
     [](Writer& w) {
       const V s = sigmoid(w.x());
       w.x() * s;
       w.g.output(s.id);
     }},
    {"sigmoid_of_a_sum", [](Writer& w) { w.x() * sigmoid(w.x() + 1.0); }},
    {"two_plus_exp", [](Writer& w) { w.x() / (2.0 + exp(-w.x())); }},
    {"exp_without_sign", [](Writer& w) { w.x() / (1.0 + exp(w.x() + 1.0)); }},
    {"slope_not_known", [](Writer& w) { w.x() * sigmoid(w.x() * V{&w, w.g.constant(f32, {})}); }},
    {"slope_per_column", [](Writer& w) { w.x() * sigmoid(w.x() * w.input({8})); }},
    {"tanh_without_half", [](Writer& w) { w.x() * (1.0 + tanh(w.x() * 0.5)); }},
    {"tanh_minus_one", [](Writer& w) { w.x() * (0.5 * (tanh(w.x() * 0.5) - 1.0)); }},
    {"sigmoid_of_a_row_meets_all_rows",
     [](Writer& w) {
       const V row = w.input({1, 8});
       (w.x() + row) * sigmoid(row);
     }},
};
class RaiseSwishTwin : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseSwishTwin, StaysAsItIs) {
  Writer w;
  GetParam().write(w);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(BrokenConditions, RaiseSwishTwin, ::testing::ValuesIn(kNoSwishes), kName);

// ---- limited searches

TEST(RaiseDecomposed, SaysWhereASearchWasGivenUp) {
  Writer w;
  const V x = w.x();
  (x * (x * (x * x * x) * kCubic * kSlope + x)) * sigmoid(x);
  const Graph graph = w.g.finish();
  const std::optional<Graph> marked = raise_decomposed(graph, 2);
  ASSERT_TRUE(marked.has_value());
  EXPECT_EQ(kinds_of(*marked), kinds_of(graph));
  verify_graph(*marked, "raise_decomposed");
  const Op& root = marked->ops().back();
  EXPECT_NE(root.given_up, "");
  EXPECT_EQ(raise_decomposed(graph), std::nullopt);  // with enough steps, the search proves that there is no match

  const auto shared = std::make_shared<const Graph>(*marked);
  const std::vector<Partition> partitions =
      make_partitions(shared, groups_of(*shared), std::vector<std::string>(shared->ops().size()));
  std::string told;
  for (const Partition& partition : partitions)
    for (size_t i = 0; i < partition.ops.size(); ++i)
      for (const Reason& reason : partition.reasons[i])
        if (partition.ops[i] == static_cast<int>(shared->ops().size()) - 1 && reason.code == "not_raised.search_limit")
          told = reason.text;
  EXPECT_EQ(told, join(describe(root), " may be the end of a formula of pattern ", root.given_up,
                       ": it matches in too many ways, and the search reached its limit"));
}

}  // namespace
}  // namespace lamina::testing
