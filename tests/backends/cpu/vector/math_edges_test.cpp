// Values of the elementary functions that are known exactly: limits, signs, special cases of C's library.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/vector/function_runs.h"

namespace lamina::cpu::testing {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// Expects f(x) for one x, on the most basic and the widest instruction set.
template <typename T>
void expect_value(const Emit& emit, double x, double expected) {
  for (const auto& level : {runnable_levels().front(), runnable_levels().back()}) {
    const T got = run<T>(level, emit, {static_cast<T>(x)}, 8).front();
    if (std::isnan(expected)) {
      EXPECT_TRUE(std::isnan(got)) << "f(" << x << ") is " << got;
    } else {
      EXPECT_EQ(got, static_cast<T>(expected)) << "f(" << x << ")";
      EXPECT_EQ(std::signbit(got), std::signbit(expected)) << "f(" << x << ")";
    }
  }
}
void expect_values(const Emit& emit, const std::vector<std::pair<double, double>>& arguments_and_values) {
  for (const auto& [x, expected] : arguments_and_values) {
    expect_value<float>(emit, x, expected);
    expect_value<double>(emit, x, expected);
  }
}

TEST(VectorMathEdges, ReachTheirLimits) {
  expect_values(of(MapOp::exp), {{kInf, kInf}, {-kInf, 0}, {0, 1}, {-0.0, 1}, {1000, kInf}, {-1000, 0}, {kNan, kNan}});
  expect_values(of(MapOp::expm1), {{kInf, kInf}, {-kInf, -1}, {0, 0}, {-0.0, -0.0}, {-1000, -1}, {kNan, kNan}});
  expect_values(of(MapOp::log), {{0, -kInf}, {-0.0, -kInf}, {1, 0}, {kInf, kInf}, {-1, kNan}, {-kInf, kNan}, {kNan, kNan}});
  expect_values(of(MapOp::log1p), {{-1, -kInf}, {0, 0}, {-0.0, -0.0}, {kInf, kInf}, {-2, kNan}, {kNan, kNan}});
  expect_values(of(MapOp::tanh), {{kInf, 1}, {-kInf, -1}, {50, 1}, {0, 0}, {-0.0, -0.0}, {kNan, kNan}});
  expect_values(of(MapOp::erf), {{kInf, 1}, {-kInf, -1}, {7, 1}, {0, 0}, {-0.0, -0.0}, {kNan, kNan}});
  expect_values(of(MapOp::sigmoid), {{kInf, 1}, {-kInf, 0}, {0, 0.5}, {50, 1}, {-1000, 0}, {kNan, kNan}});
  expect_values(of(MapOp::erfc), {{kInf, 0}, {-kInf, 2}, {0, 1}, {-0.0, 1}, {-50, 2}, {50, 0}, {kNan, kNan}});
  expect_values(of(MapOp::normal_cdf), {{kInf, 1}, {-kInf, 0}, {0, 0.5}, {-50, 0}, {50, 1}, {kNan, kNan}});
  expect_values(of(MapOp::gelu), {{kInf, kInf}, {-kInf, kNan}, {0, 0}, {-0.0, -0.0}, {-50, -0.0}, {50, 50}, {kNan, kNan}});
}

TEST(VectorMathEdges, SignsAndFractionsAreExact) {
  expect_values(of(MapOp::sign), {{0, 0}, {-0.0, 0}, {1e-40, 1}, {-1e-40, -1}, {kInf, 1}, {-kInf, -1}, {kNan, 0}});
  expect_values(of(MapOp::trunc),
                {{0.75, 0}, {-0.75, -0.0}, {-2.5, -2}, {-0.0, -0.0}, {8388609, 8388609}, {-kInf, -kInf}, {kNan, kNan}});
  expect_values(of(MapOp::floor),
                {{0.75, 0}, {-0.75, -1}, {-2.5, -3}, {-0.0, -0.0}, {8388609, 8388609}, {-kInf, -kInf}, {kNan, kNan}});
}

// The special cases of C's atan2, Annex F, and points on the axes and the diagonals.
TEST(VectorMathEdges, AnglesFollowC) {
  const double points[] = {0, -0.0, 1, -1, kInf, -kInf, kNan, 1e-310, 1e300};
  for (const double x : points)
    for (const double y : points) {
      SCOPED_TRACE("x " + std::to_string(x));
      expect_value<float>(atan2_at(x), y, std::atan2(static_cast<float>(y), static_cast<float>(x)));
      expect_value<double>(atan2_at(x), y, std::atan2(y, x));
    }
}

template <typename T>
void expect_remainders_of_c(double divisor) {
  const T y = static_cast<T>(divisor);
  std::vector<T> values{0,
                        T(-0.0),
                        1,
                        -1,
                        T(5.5),
                        T(1e10),
                        T(-1e38),
                        std::numeric_limits<T>::max(),
                        std::numeric_limits<T>::denorm_min(),
                        T(kInf),
                        T(-kInf),
                        T(kNan)};
  for (int exponent = 0; exponent < std::numeric_limits<T>::max_exponent; exponent += 3)
    for (const T factor : {std::nextafter(T(1), T(0)), T(1), std::nextafter(T(1), T(2)), T(1.6180339887)})
      values.push_back(std::abs(y) * std::ldexp(factor, exponent));
  for (const auto& level : {runnable_levels().front(), runnable_levels().back()}) {
    const std::vector<T> got = run<T>(level, at(MapOp::fmod, divisor), values, 8);
    for (size_t i = 0; i < values.size(); ++i) {
      const T expected = std::fmod(values[i], y);
      if (std::isnan(expected)) {
        EXPECT_TRUE(std::isnan(got[i])) << values[i] << " modulo " << y << " is " << got[i];
      } else {
        EXPECT_EQ(got[i], expected) << values[i] << " modulo " << y;
        EXPECT_EQ(std::signbit(got[i]), std::signbit(expected)) << values[i] << " modulo " << y;
      }
    }
  }
}

// Quotients on both sides of every power of two, and the special cases of Annex F.
TEST(VectorMathEdges, RemaindersOfAnyQuotientAreCs) {
  for (const double divisor :
       {3.0, -7.25, 0.1, 0x1p-126, 3 * 0x1p-149, 0x1p-149, 1e38, 5e-324, 1.7e-308, 0.0, -0.0, kInf, kNan}) {
    expect_remainders_of_c<float>(divisor);
    expect_remainders_of_c<double>(divisor);
  }
}

TEST(VectorMathEdges, CirclesOfAnySize) {
  expect_values(of(MapOp::sin), {{0, 0}, {-0.0, -0.0}, {kInf, kNan}, {-kInf, kNan}, {kNan, kNan}});
  expect_values(of(MapOp::cos), {{0, 1}, {-0.0, 1}, {kInf, kNan}, {-kInf, kNan}, {kNan, kNan}});
  // Arguments close to multiples of pi / 2, up to the largest of each type; the expected values exceed the precision of long
  // double.
  expect_value<double>(of(MapOp::cos), 6381956970095103.0 * 0x1p797, -4.68716592425462761112e-19);
  expect_value<double>(of(MapOp::sin), 1e22, -0.8522008497671888017727);
  expect_value<double>(of(MapOp::sin), 0x1.fffffffffffffp1023, 0.0049619547891840618);
  expect_value<float>(of(MapOp::cos), 0x1.fffffep127, 0.8530210F);
  expect_value<float>(of(MapOp::sin), 0x1.fffffep127, -0.52187652F);
}

TEST(VectorMathEdges, NeverPassOneAndKeepTheirOrderNearIt) {
  for (const auto& emit : {of(MapOp::tanh), of(MapOp::erf), of(MapOp::sigmoid), of(MapOp::normal_cdf)}) {
    std::vector<float> values;
    for (float x = -30; x < 30; x += 0.0137F) values.push_back(x);
    const auto results = run(runnable_levels().back(), emit, values);
    for (size_t i = 1; i < results.size(); ++i) {
      EXPECT_LE(results[i - 1], results[i]) << "at " << values[i];
      EXPECT_LE(std::fabs(results[i]), 1.0F) << "at " << values[i];
    }
  }
}

// The special cases of C's pow, Annex F.
TEST(VectorMathEdges, PowersFollowC) {
  const double points[] = {0, -0.0, 1, -1, kInf, -kInf, kNan};  // where pow is exact
  for (const double beta : {0.0, 1.0, 2.0, 3.0, -1.0, 0.5, -0.5, 4.0, 5.0, -2.0, -3.0, 2.5, -2.5, 1e10, kInf, -kInf, kNan})
    for (const double x : points) {
      SCOPED_TRACE("beta " + std::to_string(beta));
      expect_value<float>(pow_by(beta), x, std::pow(x, beta));
      expect_value<double>(pow_by(beta), x, std::pow(x, beta));
    }
}

TEST(VectorMathEdges, NegativeNumbersHaveIntegerPowersOnly) {
  expect_values(pow_by(5), {{-2, -32}, {-0.5, -0x1p-5}});
  expect_values(pow_by(4), {{-2, 16}, {-0.5, 0x1p-4}});
  expect_values(pow_by(-3), {{-2, -0x1p-3}, {-0.5, -8}});
  expect_values(pow_by(2.5), {{-2, kNan}, {-0.5, kNan}, {-1e-30, kNan}});
  expect_values(pow_by(-0.5), {{-2, kNan}});
}

TEST(VectorMathEdges, HalvesRoundToEven) {
  expect_values(of(MapOp::round_half_even), {{0.5, 0},
                                             {-0.5, -0.0},
                                             {1.5, 2},
                                             {2.5, 2},
                                             {-2.5, -2},
                                             {0.49999997, 0},
                                             {8388609, 8388609},
                                             {-0.0, -0.0},
                                             {-0.25, -0.0},
                                             {kInf, kInf},
                                             {-kInf, -kInf},
                                             {kNan, kNan}});
}

}  // namespace
}  // namespace lamina::cpu::testing
