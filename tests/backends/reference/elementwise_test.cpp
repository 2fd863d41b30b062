// Elementwise ops: results computed by hand, and arguments for which the textbook formula overflows or cancels.
#include <limits>
#include <numbers>

#include "backends/reference/op_case.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
const double kNaN = std::numeric_limits<double>::quiet_NaN();
const double kInf = std::numeric_limits<double>::infinity();

OpCase unary(OpKind kind, const Numbers& src) {
  OpCase op(kind);
  op.input({static_cast<int64_t>(src.size())}, src);
  return op;
}

TEST(ReferenceElementwise, PiecewiseLinearOps) {
  EXPECT_THAT(unary(OpKind::Abs, {-2, 0, 3}).result(), ElementsAre(2, 0, 3));
  EXPECT_THAT(unary(OpKind::ReLU, {-2, 0, 3}).result(), ElementsAre(0, 0, 3));
  EXPECT_THAT(unary(OpKind::Clamp, {-2, 0.5, 3}).attr("min", -1.0).attr("max", 2.0).result(), ElementsAre(-1, 0.5, 2));
  EXPECT_THAT(unary(OpKind::LeakyReLU, {-2, 0, 3}).attr("alpha", 0.25).result(), ElementsAre(-0.5, 0, 3));
  EXPECT_THAT(unary(OpKind::HardSigmoid, {-9, 1, 9}).attr("alpha", 0.25).attr("beta", 0.5).result(), ElementsAre(0, 0.75, 1));
  EXPECT_THAT(unary(OpKind::HardSwish, {-4, -1, 3, 5}).result(), ElementsAre(0, -1.0 / 3, 3, 5));
}

TEST(ReferenceElementwise, PowersAndRoots) {
  EXPECT_THAT(unary(OpKind::Square, {-3, 0.5}).result(), ElementsAre(9, 0.25));
  EXPECT_THAT(unary(OpKind::Sqrt, {0, 2.25}).result(), ElementsAre(0, 1.5));
  EXPECT_THAT(unary(OpKind::Reciprocal, {-4, 0}).result(), ElementsAre(-0.25, kInf));
  EXPECT_THAT(unary(OpKind::Pow, {-2, 4}).attr("beta", 3.0).result(), ElementsAre(-8, 64));
  expect_close(unary(OpKind::Pow, {-2, 4, 0}).attr("beta", -0.5).result(), {kNaN, 0.5, kInf});
  EXPECT_THAT(unary(OpKind::Pow, {0, -7}).attr("beta", 0.0).result(), ElementsAre(1, 1));
}

TEST(ReferenceElementwise, RoundTakesHalvesToEven) {
  EXPECT_THAT(unary(OpKind::Round, {-2.5, -1.5, -0.5, 0.5, 1.5, 2.5, 2.4, 2.6, -kInf}).result(),
              ElementsAre(-2, -2, 0, 0, 2, 2, 2, 3, -kInf));
}

TEST(ReferenceElementwise, ExponentialFamily) {
  expect_close(unary(OpKind::Exp, {0, 1, -kInf}).result(), {1, std::exp(1.0), 0});
  expect_close(unary(OpKind::Log, {1, 0, -1}).result(), {0, -kInf, kNaN});
  expect_close(unary(OpKind::Elu, {2, -1}).attr("alpha", 2.0).result(), {2, 2 * (std::exp(-1.0) - 1)});
  expect_close(unary(OpKind::Sigmoid, {0, std::log(3.0), -std::log(3.0)}).result(), {0.5, 0.75, 0.25});
  expect_close(unary(OpKind::Tanh, {0, std::log(3.0)}).result(), {0, 0.8});
  // e^x = 1: ln 2; with beta 2 and x = ln(3) / 2: ln(4) / 2
  expect_close(unary(OpKind::SoftPlus, {0}).result(), {std::log(2.0)});
  expect_close(unary(OpKind::SoftPlus, {std::log(3.0) / 2}).attr("beta", 2.0).result(), {std::log(2.0)});
  expect_close(unary(OpKind::Swish, {0, std::log(3.0)}).result(), {0, 0.75 * std::log(3.0)});
  expect_close(unary(OpKind::Swish, {std::log(3.0)}).attr("alpha", -2.0).result(), {0.1 * std::log(3.0)});
  // tanh(ln 2) = (2 - 1/2) / (2 + 1/2) = 0.6; with e^x = 3, tanh(ln 4) = 15/17
  expect_close(unary(OpKind::Mish, {0, std::log(3.0)}).result(), {0, std::log(3.0) * 15 / 17});
}

TEST(ReferenceElementwise, SineAndCosineTakeRadians) {
  const double third = std::numbers::pi / 3;
  expect_close(unary(OpKind::Sin, {0, third / 2, -third / 2, kInf}).result(), {0, 0.5, -0.5, kNaN});
  expect_close(unary(OpKind::Cos, {0, third, 3 * third}).result(), {1, 0.5, -1});
}

TEST(ReferenceElementwise, LogarithmsAndExponentialsNearZero) {
  expect_close(unary(OpKind::Log1p, {0, 1e-20, std::numbers::e - 1, -1}).result(), {0, 1e-20, 1, -kInf});
  expect_close(unary(OpKind::Expm1, {0, 1e-20, 1, -kInf}).result(), {0, 1e-20, std::numbers::e - 1, -1});
  // erfc(1) = 0.157299207050285130659, erfc(10) = 2.088487583762544757e-45
  expect_close(unary(OpKind::Erfc, {0, 1, -1, 10}).result(),
               {1, 0.15729920705028513, 2 - 0.15729920705028513, 2.088487583762544757e-45});
}

TEST(ReferenceElementwise, SignAndTruncAreExact) {
  EXPECT_THAT(unary(OpKind::Sign, {-2.5, 0, 3, kInf, kNaN}).result(), ElementsAre(-1, 0, 1, 1, 0));
  EXPECT_THAT(unary(OpKind::Trunc, {-2.5, -0.25, 0.75, 3}).result(), ElementsAre(-2, 0, 0, 3));
}

TEST(ReferenceElementwise, GeluHasTwoForms) {
  // Phi(1) = 0.841344746068542949, Phi(-1) = 0.158655253931457051
  expect_close(unary(OpKind::GELU, {0, 1, -1}).result(), {0, 0.841344746068542949, -0.158655253931457051});
  const double u = std::sqrt(2 / std::numbers::pi) * 1.044715;
  expect_close(unary(OpKind::GELU, {0, 1, -1}).attr("mode", "gelu_tanh").result(),
               {0, 0.5 * (1 + std::tanh(u)), -0.5 * (1 - std::tanh(u))});
}

TEST(ReferenceElementwise, KeepsSmallResultsAndDoesNotOverflow) {
  expect_close(unary(OpKind::Sigmoid, {-700, 700, -kInf, kInf}).result(), {std::exp(-700.0), 1, 0, 1});
  EXPECT_NEAR(unary(OpKind::Sigmoid, {-700}).result()[0] / std::exp(-700.0), 1, 1e-14);
  EXPECT_NEAR(unary(OpKind::SoftPlus, {-700}).result()[0] / std::exp(-700.0), 1, 1e-14);
  EXPECT_THAT(unary(OpKind::SoftPlus, {800, -kInf, kInf}).result(), ElementsAre(800, 0, kInf));
  EXPECT_THAT(unary(OpKind::Mish, {800, kInf}).result(), ElementsAre(800, kInf));
  EXPECT_NEAR(unary(OpKind::Mish, {-600}).result()[0] / (-600 * std::exp(-600.0)), 1, 1e-14);
  EXPECT_NEAR(unary(OpKind::Elu, {-1e-12}).attr("alpha", 1.0).result()[0] / -1e-12, 1, 1e-11);
  // -20 * Phi(-20): Phi(-20) = 2.7536241186062337e-89
  EXPECT_NEAR(unary(OpKind::GELU, {-20}).result()[0] / (-20 * 2.7536241186062337e-89), 1, 1e-13);
}

TEST(ReferenceElementwise, NanGoesThrough) {
  for (const OpKind kind : {OpKind::Abs, OpKind::Exp, OpKind::GELU, OpKind::HardSwish, OpKind::Log, OpKind::Mish, OpKind::ReLU,
                            OpKind::Round, OpKind::Sigmoid, OpKind::SoftPlus, OpKind::Sqrt, OpKind::Swish, OpKind::Tanh})
    EXPECT_TRUE(std::isnan(unary(kind, {kNaN}).result()[0])) << name_of(kind);
  EXPECT_TRUE(std::isnan(unary(OpKind::Clamp, {kNaN}).attr("min", 0.0).attr("max", 1.0).result()[0]));
}

}  // namespace
}  // namespace lamina::testing
