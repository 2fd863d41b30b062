// RMSNorm, SoftMax and LogSoftmax as small ops, with counterparts in which one condition is broken.
#include "raise_test_support.h"

namespace lamina::testing {
namespace {

constexpr double kEpsilon = 1e-3;

struct Case {
  const char* name;
  std::function<void(Writer&)> write;
};
const auto kName = [](const auto& test) { return std::string(test.param.name); };

// ---- RMSNorm

V mean_square(Writer& w) { return mean(square(w.x())); }

const std::vector<Case> kRmsNorms{
    {"square_mean_sqrt_divide", [](Writer& w) { w.x() / sqrt(mean_square(w) + kEpsilon); }},
    {"pow_2", [](Writer& w) { w.x() / sqrt(mean(pow(w.x(), 2)) + kEpsilon); }},
    {"by_itself", [](Writer& w) { w.x() / sqrt(mean(w.x() * w.x()) + kEpsilon); }},
    {"pow_minus_half", [](Writer& w) { w.x() * pow(mean_square(w) + kEpsilon, -0.5F); }},
    {"rsqrt_first", [](Writer& w) { pow(kEpsilon + mean_square(w), -0.5F) * w.x(); }},
    {"reciprocal_of_sqrt", [](Writer& w) { w.x() * reciprocal(sqrt(mean_square(w) + kEpsilon)); }},
    {"sqrt_of_reciprocal", [](Writer& w) { w.x() * sqrt(reciprocal(mean_square(w) + kEpsilon)); }},
    {"one_over_sqrt", [](Writer& w) { w.x() * (1.0 / sqrt(mean_square(w) + kEpsilon)); }},
    {"pow_half", [](Writer& w) { w.x() / pow(mean_square(w) + kEpsilon, 0.5F); }},
    {"sum_times_inverse", [](Writer& w) { w.x() / sqrt(sum(square(w.x())) * (1 / w.row_size()) + kEpsilon); }},
    {"sum_over_count", [](Writer& w) { w.x() / sqrt(sum(square(w.x())) / w.row_size() + kEpsilon); }},
    {"sum_of_parts", [](Writer& w) { w.x() / sqrt(sum(square(w.x()) / w.row_size()) + kEpsilon); }},
};
// a is x / rms; other spellings multiply by gamma elsewhere.
const std::vector<Case> kScaledRmsNorms{
    {"times_gamma", [](Writer& w) { w.x() / sqrt(mean_square(w) + kEpsilon) * w.gamma(); }},
    {"gamma_times", [](Writer& w) { w.gamma() * (w.x() * pow(mean_square(w) + kEpsilon, -0.5F)); }},
    {"gamma_with_rstd", [](Writer& w) { w.x() * (pow(mean_square(w) + kEpsilon, -0.5F) * w.gamma()); }},
    {"gamma_with_x", [](Writer& w) { (w.gamma() * w.x()) * pow(mean_square(w) + kEpsilon, -0.5F); }},
    {"gamma_with_x_divided", [](Writer& w) { (w.x() * w.gamma()) / sqrt(mean_square(w) + kEpsilon); }},
    {"gamma_over_rms", [](Writer& w) { w.x() * (w.gamma() / sqrt(mean_square(w) + kEpsilon)); }},
};

class RaiseRmsNorm : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseRmsNorm, BecomesOneOp) {
  Writer w({2, 3, 8});
  GetParam().write(w);
  const Graph graph = expect_raised(w, "RMSNorm");
  EXPECT_EQ(graph.ops()[0].attribute<float>("epsilon"), static_cast<float>(kEpsilon));
  EXPECT_EQ(graph.ops()[0].attribute<int64_t>("begin_norm_axis"), 2);
}
TEST_P(RaiseRmsNorm, OverSeveralAxes) {
  Writer w({2, 3, 8});
  w.axes = {-2, -1};
  GetParam().write(w);
  EXPECT_EQ(expect_raised(w, "RMSNorm").ops()[0].attribute<int64_t>("begin_norm_axis"), 1);
}
TEST_P(RaiseRmsNorm, NotOverTheFirstAxis) {
  Writer w({8, 8});
  w.axes = {0};
  GetParam().write(w);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(Plain, RaiseRmsNorm, ::testing::ValuesIn(kRmsNorms), kName);
INSTANTIATE_TEST_SUITE_P(Scaled, RaiseRmsNorm, ::testing::ValuesIn(kScaledRmsNorms), kName);

TEST(RaiseRmsNormTypes, SixteenBitDataComputedInF32) {
  // the form in language models: the square in f32, converted back to bf16 before gamma
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  const V normalized = w.cast(x * pow(mean(square(x)) + kEpsilon, -0.5F), bf16);
  w.compute_in(bf16);
  w.gamma() * normalized;
  expect_raised(w, "RMSNorm", 2e-2);
}

TEST(RaiseRmsNormTypes, AWideInputThatIsReadElsewhereStays) {
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  const V normalized = w.cast(x * pow(mean(square(x)) + kEpsilon, -0.5F), bf16);
  exp(x);
  w.compute_in(bf16);
  w.gamma() * normalized;
  expect_raised(w, "TypeCast RMSNorm Exp", 2e-2);
}

const std::vector<Case> kNoRmsNorms{
    {"epsilon_outside", [](Writer& w) { w.x() / (sqrt(mean_square(w)) + kEpsilon); }},
    {"no_epsilon", [](Writer& w) { w.x() / sqrt(mean_square(w)); }},
    {"sum_of_squares", [](Writer& w) { w.x() / sqrt(sum(square(w.x())) + kEpsilon); }},
    {"count_of_another_size", [](Writer& w) { w.x() / sqrt(sum(square(w.x())) / 7.0 + kEpsilon); }},
    {"square_of_something_else", [](Writer& w) { w.x() / sqrt(mean(square(w.input(w.shape()))) + kEpsilon); }},
    {"pow_3", [](Writer& w) { w.x() / sqrt(mean(pow(w.x(), 3)) + kEpsilon); }},
    {"no_square", [](Writer& w) { w.x() / sqrt(mean(w.x()) + kEpsilon); }},
    {"root_is_an_output",
     [](Writer& w) {
       const V rms = sqrt(mean_square(w) + kEpsilon);
       w.x() / rms;
       w.g.output(rms.id);
     }},
    {"rms_over_x", [](Writer& w) { sqrt(mean_square(w) + kEpsilon) / w.x(); }},
    {"epsilon_not_known", [](Writer& w) { w.x() / sqrt(mean_square(w) + V{&w, w.g.scalar(f32)}); }},
};
class RaiseRmsNormTwin : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseRmsNormTwin, StaysAsItIs) {
  Writer w;
  GetParam().write(w);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(BrokenConditions, RaiseRmsNormTwin, ::testing::ValuesIn(kNoRmsNorms), kName);

// ---- SoftMax

V shifted(Writer& w) { return w.x() - max(w.x()); }

const std::vector<Case> kSoftmaxes{
    {"divide",
     [](Writer& w) {
       const V e = exp(shifted(w));
       e / sum(e);
     }},
    {"computed_twice", [](Writer& w) { exp(shifted(w)) / sum(exp(shifted(w))); }},
    {"without_maximum", [](Writer& w) { exp(w.x()) / sum(exp(w.x())); }},
    {"without_maximum_shared",
     [](Writer& w) {
       const V e = exp(w.x());
       e / sum(e);
     }},
    {"negative_added",
     [](Writer& w) {
       const V e = exp(w.x() + -max(w.x()));
       e / sum(e);
     }},
    {"zero_minus_added",
     [](Writer& w) {
       const V e = exp((0.0 - max(w.x())) + w.x());
       e / sum(e);
     }},
    {"times_reciprocal",
     [](Writer& w) {
       const V e = exp(shifted(w));
       e* reciprocal(sum(e));
     }},
    {"times_one_over",
     [](Writer& w) {
       const V e = exp(shifted(w));
       (1.0 / sum(e)) * e;
     }},
    {"times_pow_minus_one",
     [](Writer& w) {
       const V e = exp(shifted(w));
       e* pow(sum(e), -1);
     }},
    {"exp_of_shifted_minus_log_sum", [](Writer& w) { exp(shifted(w) - log(sum(exp(shifted(w))))); }},
    {"exp_of_x_minus_log_sum_exp",
     [](Writer& w) {
       const V m = max(w.x());
       exp(w.x() - (m + log(sum(exp(w.x() - m)))));
     }},
    {"exp_of_x_minus_plain_log_sum_exp", [](Writer& w) { exp(w.x() - log(sum(exp(w.x())))); }},
};
const std::vector<Case> kLogSoftmaxes{
    {"shifted_minus_log_sum", [](Writer& w) { shifted(w) - log(sum(exp(shifted(w)))); }},
    {"shared",
     [](Writer& w) {
       const V s = shifted(w);
       s - log(sum(exp(s)));
     }},
    {"log_sum_exp",
     [](Writer& w) {
       const V m = max(w.x());
       w.x() - (log(sum(exp(w.x() - m))) + m);
     }},
    {"plain", [](Writer& w) { w.x() - log(sum(exp(w.x()))); }},
};

void expect_softmax(const Case& written, Writer& w, const std::string& kind, int64_t axis) {
  written.write(w);
  EXPECT_EQ(expect_raised(w, kind).ops()[0].attribute<int64_t>("axis"), axis);
}

class RaiseSoftmax : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseSoftmax, BecomesOneOp) {
  Writer w({2, 3, 8});
  expect_softmax(GetParam(), w, "SoftMax", 2);
}
TEST_P(RaiseSoftmax, AlongAnyAxis) {
  Writer w({2, 3, 8});
  w.axes = {-2};
  expect_softmax(GetParam(), w, "SoftMax", 1);
}
TEST_P(RaiseSoftmax, NotAlongTwoAxes) {
  Writer w({2, 3, 8});
  w.axes = {1, 2};
  GetParam().write(w);
  expect_unchanged(w);
}
TEST_P(RaiseSoftmax, NotWhereTheSumMeetsTheWrongAxis) {
  Writer w({8, 8});
  w.keep_dims = false;
  GetParam().write(w);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(Spellings, RaiseSoftmax, ::testing::ValuesIn(kSoftmaxes), kName);

class RaiseLogSoftmax : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseLogSoftmax, BecomesOneOp) {
  Writer w({2, 3, 8});
  expect_softmax(GetParam(), w, "LogSoftmax", 2);
}
INSTANTIATE_TEST_SUITE_P(Spellings, RaiseLogSoftmax, ::testing::ValuesIn(kLogSoftmaxes), kName);

TEST(RaiseSoftmaxForms, WithReshapesInsteadOfKeepDims) {
  Writer w({2, 3, 8});
  w.keep_dims = false;
  const V e = exp(w.x() - w.reshape(max(w.x()), {2, 3, 1}));
  e / w.reshape(sum(e), {2, 3, 1});
  expect_raised(w, "SoftMax");
}
TEST(RaiseSoftmaxForms, SixteenBitDataComputedInF32) {
  Writer w({4, 8}, bf16);
  const V x = w.cast(w.x(), f32);
  w.compute_in(f32);
  const V e = exp(x - max(x));
  w.cast(e / sum(e), bf16);
  expect_raised(w, "TypeCast SoftMax TypeCast", 2e-2);
}
TEST(RaiseSoftmaxForms, TheSoftmaxOfADifferenceIsOne) {
  Writer w({8, 8});  // the maximum is taken over another axis, so only the softmax of the difference is raised
  const V m = max(w.x());
  w.axes = {0};
  const V e = exp(w.x() - m);
  e / sum(e);
  expect_raised(w, "ReduceMax Subtract SoftMax");
}

const std::vector<Case> kNoSoftmaxes{
    {"shifted_over_plain", [](Writer& w) { exp(shifted(w)) / sum(exp(w.x())); }},
    {"plain_over_shifted", [](Writer& w) { exp(w.x()) / sum(exp(shifted(w))); }},
    {"mean_of_exponentials", [](Writer& w) { exp(w.x()) / mean(exp(w.x())); }},
    {"sum_of_something_else", [](Writer& w) { exp(w.x()) / sum(exp(w.input(w.shape()))); }},
    {"sum_over_exp", [](Writer& w) { sum(exp(w.x())) / exp(w.x()); }},
    {"exponentials_are_an_output",
     [](Writer& w) {
       const V e = exp(w.x());
       e / sum(e);
       w.g.output(e.id);
     }},
    {"sum_is_used_elsewhere",
     [](Writer& w) {
       const V e = exp(w.x());
       const V s = sum(e);
       e / s;
       log(s);
     }},
    {"epsilon_in_the_sum",
     [](Writer& w) {
       const V e = exp(w.x());
       e / (sum(e) + kEpsilon);
     }},
};
class RaiseSoftmaxTwin : public ::testing::TestWithParam<Case> {};
TEST_P(RaiseSoftmaxTwin, StaysAsItIs) {
  Writer w;
  GetParam().write(w);
  expect_unchanged(w);
}
INSTANTIATE_TEST_SUITE_P(BrokenConditions, RaiseSoftmaxTwin, ::testing::ValuesIn(kNoSoftmaxes), kName);

}  // namespace
}  // namespace lamina::testing
