// Accuracy, and identical bits across instruction sets, of the elementary functions that the CPU backend emits.
//
// Accuracy is the largest error in ULP against long double, over a sample of floats (every float with LAMINA_EXHAUSTIVE=1, some
// minutes per function) and of doubles. The bounds are the results of exhaustive runs, rounded up.
#include "backends/cpu/vector/math.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>
#include <numbers>
#include <random>

#include "backends/cpu/vector/function_runs.h"

namespace lamina::cpu::testing {
namespace {

using Wide = long double;
constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// erfc(-x / sqrt(2)) / 2, with a first-order correction of the argument's rounding error.
Wide normal_cdf(Wide x) {
  if (std::isinf(x)) return x > 0 ? 1 : 0;
  constexpr Wide kHigh = 0.707106781186547524400844362104849039L;
  const Wide low =
      0.5L - kHigh * kHigh > 0 ? std::fma(-kHigh, kHigh, 0.5L) / (2 * kHigh) : std::fma(-kHigh, kHigh, 0.5L) / (2 * kHigh);
  const Wide h = -x * kHigh;
  const Wide delta = std::fma(-x, kHigh, -h) - x * low;
  return (std::erfc(h) - 2 / std::sqrt(std::numbers::pi_v<Wide>) * std::exp(-h * h) * delta) / 2;
}
Wide sigmoid(Wide x) { return 1 / (1 + std::exp(-x)); }

struct Function {  // gtest prints its name if a test fails
  friend void PrintTo(const Function& function, std::ostream* out) { *out << function.name; }

  std::string name;
  Emit emit;
  Wide (*expected)(Wide);
  double float_bound;
  double double_bound;
  double float_unit = 0;         // the smallest unit of an ULP in float
  double unit_of_x = 0;          // the smallest unit of an ULP as a part of |x|
  Wide (*tail)(Wide) = nullptr;  // the result is 0 where this is below the smallest normal number
};

// The bounds, in ULP.
const std::vector<Function>& functions() {
  static const std::vector<Function> all{
      {"exp", of(MapOp::exp), std::exp, 1.0, 1.0, 0, 0, std::exp},
      {"expm1", of(MapOp::expm1), std::expm1, 1.7, 2.0},
      {"log", of(MapOp::log), std::log, 1.0, 1.1},
      {"log1p", of(MapOp::log1p), std::log1p, 1.5, 1.8},
      {"tanh", of(MapOp::tanh), std::tanh, 2.0, 2.1},
      {"sigmoid", of(MapOp::sigmoid), sigmoid, 1.8, 1.8, 0, 0, sigmoid},
      {"erf", of(MapOp::erf), std::erf, 1.2, 1.4},
      {"erfc", of(MapOp::erfc), std::erfc, 3.8, 4.0, 0, 0, std::erfc},
      {"normal_cdf", of(MapOp::normal_cdf), normal_cdf, 2.3, 3.2, 0.5, 0, normal_cdf},
      {"gelu", of(MapOp::gelu), [](Wide x) { return x * normal_cdf(x); }, 4.1, 4.1, 0, 0.5, normal_cdf},
      {"sin", of(MapOp::sin), std::sin, 0.51, 1.0},
      {"cos", of(MapOp::cos), std::cos, 0.51, 1.0},
      {"atan2_at_1", atan2_at(1), [](Wide y) { return std::atan2(y, 1.0L); }, 1.5, 1.5},
      {"atan2_at_-0.75", atan2_at(-0.75), [](Wide y) { return std::atan2(y, -0.75L); }, 1.5, 1.5},
      {"sign", of(MapOp::sign), [](Wide x) { return x > 0   ? 1.0L
                                                    : x < 0 ? -1.0L
                                                            : 0.0L; }, 0, 0},
      {"trunc", of(MapOp::trunc), std::trunc, 0, 0},
      {"floor", of(MapOp::floor), std::floor, 0, 0},
      {"pow_2.5", pow_by(2.5), [](Wide x) { return std::pow(x, 2.5L); }, 0.51, 1.0},
      {"pow_-1.75", pow_by(-1.75), [](Wide x) { return std::pow(x, -1.75L); }, 0.51, 1.0},
      {"pow_7", pow_by(7), [](Wide x) { return std::pow(x, 7.0L); }, 0.51, 1.0},
      {"pow_-4", pow_by(-4), [](Wide x) { return std::pow(x, -4.0L); }, 0.51, 1.0},
      {"pow_0.5", pow_by(0.5), [](Wide x) { return std::pow(x, 0.5L); }, 0.51, 0.51},
      {"pow_-0.5", pow_by(-0.5), [](Wide x) { return std::pow(x, -0.5L); }, 1.5, 1.5},
      {"pow_3", pow_by(3), [](Wide x) { return std::pow(x, 3.0L); }, 1.5, 1.5},
  };
  return all;
}

template <typename T>
double error_in_ulp(T got, Wide expected, double unit = 0) {
  if (std::isnan(expected)) return std::isnan(got) ? 0 : kInf;
  if (std::isnan(got)) return kInf;
  if (static_cast<Wide>(got) == expected || got == static_cast<T>(expected)) {
    if (std::isinf(got) || expected == 0) return 0;
  }
  if (std::isinf(got) || std::isinf(expected)) return kInf;
  const int digits = std::numeric_limits<T>::digits;
  const Wide magnitude = std::max(std::fabs(expected), Wide{unit});
  const int exponent = magnitude == 0 ? -100000 : std::ilogb(magnitude);
  const int ulp = std::max(exponent, std::numeric_limits<T>::min_exponent - 1) - digits + 1;
  return static_cast<double>(std::ldexp(std::fabs(static_cast<Wide>(got) - expected), -ulp));
}

template <typename T>
std::vector<T> edge_values() {
  using Limits = std::numeric_limits<T>;
  std::vector<T> values{0, 1, 2, Limits::min(), Limits::denorm_min(), Limits::max(), Limits::infinity(), Limits::quiet_NaN()};
  for (const double around : {0.5,
                              1.0,
                              2.0,
                              6.0,
                              9.1945,
                              0.70710678118654752,
                              1.4142135623730951,
                              1e-4,
                              10.0,
                              12.949,
                              17.0,
                              22.0,
                              26.543,
                              37.519,
                              40.0,
                              80.0,
                              87.3365,
                              88.0,
                              88.7228,
                              89.0,
                              103.97,
                              104.0,
                              700.0,
                              708.3964,
                              709.78,
                              745.13,
                              746.0,
                              1e10,
                              8388608.0}) {
    T above = static_cast<T>(around), below = above;
    for (int i = 0; i < 64; ++i) {
      values.insert(values.end(), {above, below});
      above = std::nextafter(above, Limits::infinity());
      below = std::nextafter(below, T(0));
    }
  }
  const size_t count = values.size();
  for (size_t i = 0; i < count; ++i) values.push_back(-values[i]);
  return values;
}

std::vector<float> sample(float) {
  std::vector<float> values = edge_values<float>();
  for (uint64_t i = 0; i < (1U << 19); ++i) values.push_back(std::bit_cast<float>(static_cast<uint32_t>(i * 8191)));
  for (int i = -(1 << 18); i < (1 << 18); ++i) values.push_back(static_cast<float>(i) * 0x1.0123p-14F);  // -16 to 16
  for (int i = -(1 << 16); i < (1 << 16); ++i) values.push_back(static_cast<float>(i) * 0x1.b123p-10F);  // -110 to 110
  return values;
}

std::vector<double> sample(double) {
  std::vector<double> values = edge_values<double>();
  std::mt19937_64 random(7);
  for (const double range : {1.0, 3.0, 16.0, 40.0, 750.0}) {
    std::uniform_real_distribution<double> uniform(-range, range);
    for (int i = 0; i < (1 << 16); ++i) values.push_back(uniform(random));
  }
  for (int i = 0; i < (1 << 17); ++i) values.push_back(std::bit_cast<double>(random()));
  return values;
}

struct Worst {
  double error = 0;
  double at = 0;
};

// Whether the exact result is in a tail that may end: at most 2 % above the smallest normal number.
template <typename T>
bool is_beyond_tail(const Function& function, T x) {
  return function.tail != nullptr && function.tail(x) < 1.02L * std::numeric_limits<T>::min();
}

// A tail has no subnormal number; x itself may be one.
template <typename T>
bool is_wrong_tail(const Function& function, T x, T result) {
  return function.tail != nullptr && std::fpclassify(result) == FP_SUBNORMAL && std::fabs(x) > 1;
}

template <typename T>
Worst worst_error(const Function& function, const std::vector<T>& values, const std::vector<T>& results) {
  Worst worst;
  for (size_t i = 0; i < values.size(); ++i) {
    const double of_x = function.unit_of_x > 0 ? function.unit_of_x * std::fabs(static_cast<double>(values[i])) : 0;
    const double unit = sizeof(T) == sizeof(float) ? function.float_unit : 0;
    if (results[i] == 0 && is_beyond_tail(function, values[i])) continue;
    const double error = is_wrong_tail(function, values[i], results[i])
                             ? kInf
                             : error_in_ulp(results[i], function.expected(values[i]), std::max(unit, of_x));
    if (error > worst.error) worst = {error, values[i]};
  }
  return worst;
}

class VectorMath : public ::testing::TestWithParam<Function> {};

TEST_P(VectorMath, IsAccurateInFloat) {
  const auto values = sample(float{});
  const Worst worst = worst_error(GetParam(), values, run(runnable_levels().back(), GetParam().emit, values));
  EXPECT_LE(worst.error, GetParam().float_bound) << "at " << std::hexfloat << worst.at;
  RecordProperty("ulp", std::to_string(worst.error));
  if (std::getenv("LAMINA_PRINT_ULP")) std::printf("%s f32 %.3f at %a\n", GetParam().name.c_str(), worst.error, worst.at);
}

TEST_P(VectorMath, IsAccurateInDouble) {
  const auto values = sample(double{});
  const Worst worst = worst_error(GetParam(), values, run(runnable_levels().back(), GetParam().emit, values));
  EXPECT_LE(worst.error, GetParam().double_bound) << "at " << std::hexfloat << worst.at;
  RecordProperty("ulp", std::to_string(worst.error));
  if (std::getenv("LAMINA_PRINT_ULP")) std::printf("%s f64 %.3f at %a\n", GetParam().name.c_str(), worst.error, worst.at);
}

TEST_P(VectorMath, IsAccurateForEveryFloat) {
  if (!std::getenv("LAMINA_EXHAUSTIVE")) GTEST_SKIP() << "takes minutes; set LAMINA_EXHAUSTIVE=1";
  constexpr uint64_t kBlock = 1 << 20, kStep = 1;
  Worst worst;
  const auto code = jit_of(runnable_levels().back()).compile(GetParam().emit, element<float>(), element<float>(), 16);
  std::vector<float> values(kBlock), results(kBlock);
  for (uint64_t first = 0; first < (1ULL << 32); first += kBlock * kStep) {
    for (uint64_t i = 0; i < kBlock; ++i) values[i] = std::bit_cast<float>(static_cast<uint32_t>(first + i * kStep));
    code(values.data(), results.data(), kBlock);
    const Worst here = worst_error(GetParam(), values, results);
    if (here.error > worst.error) worst = here;
  }
  std::printf("%s: at most %.4f ULP, at %a\n", GetParam().name.c_str(), worst.error, worst.at);
  EXPECT_LE(worst.error, GetParam().float_bound);
}

template <typename T>
void expect_same_bits_on_every_level(const Emit& emit) {
  std::vector<T> values = edge_values<T>();
  const auto more = sample(T{});
  for (size_t i = 0; i < more.size(); i += 19) values.push_back(more[i]);
  const auto levels = runnable_levels();
  const auto plain = run(levels.front(), emit, values, 4);
  for (const auto& level : levels)
    for (const int width : {1, 4, 8, 16, 64}) {
      // LLVM needs seconds to compile a sine of 64 doubles; on narrow registers, a width of 16 already uses many registers.
      if (width == 64 && level != levels.back()) continue;
      const auto results = run(level, emit, values, width);
      for (size_t i = 0; i < values.size(); ++i)
        ASSERT_TRUE(std::memcmp(&results[i], &plain[i], sizeof(T)) == 0 || (std::isnan(results[i]) && std::isnan(plain[i])))
            << level << ", width " << width << ": f(" << values[i] << ") is " << results[i] << ", not " << plain[i];
    }
}

TEST_P(VectorMath, HasTheSameBitsOnEveryLevelAndWidthInFloat) { expect_same_bits_on_every_level<float>(GetParam().emit); }
TEST_P(VectorMath, HasTheSameBitsOnEveryLevelAndWidthInDouble) { expect_same_bits_on_every_level<double>(GetParam().emit); }

void expect_relative_errors_in_the_left_tail(MapOp op, Wide (*exact)(Wide x), float from, double ulp) {
  std::vector<float> values;
  for (float x = from; x < 0; x += 0x1p-14F) values.push_back(x);
  const auto results = run(runnable_levels().back(), of(op), values);
  for (size_t i = 0; i < values.size(); ++i) {
    const Wide expected = exact(values[i]);
    if (values[i] < -6) {
      EXPECT_LE(error_in_ulp(results[i], expected), ulp) << "at " << values[i];
    } else {
      const Wide bound = values[i] < -4 ? 0x1p-10L : 0x1p-16L;
      EXPECT_LE(std::fabs(results[i] - expected), bound * std::fabs(expected)) << "at " << values[i];
    }
  }
}
TEST(NormalCdf, KeepsARelativeErrorInTheLeftTailInFloat) {
  expect_relative_errors_in_the_left_tail(MapOp::normal_cdf, normal_cdf, -12.9F, 3.1);
  expect_relative_errors_in_the_left_tail(MapOp::gelu, [](Wide x) { return x * normal_cdf(x); }, -12.9F, 4.1);
}

template <typename T>
void expect_same_exp_without_upper_clamp() {
  std::vector<T> values = sample(T{});
  std::erase_if(values, [](T value) { return value > 0; });
  values.push_back(std::numeric_limits<T>::quiet_NaN());
  for (const auto& level : runnable_levels()) {
    const std::vector<T> whole = run(level, of(MapOp::exp), values), part = run(level, Emit(emit_exp_of_at_most_zero), values);
    EXPECT_EQ(std::memcmp(whole.data(), part.data(), whole.size() * sizeof(T)), 0);
  }
}

TEST(VectorMathEdges, ExpOfAtMostZeroGivesTheBitsOfExp) {
  expect_same_exp_without_upper_clamp<float>();
  expect_same_exp_without_upper_clamp<double>();
}

TEST(RoundHalfEven, HasTheSameBitsEverywhere) {
  const Emit emit = of(MapOp::round_half_even);
  expect_same_bits_on_every_level<float>(emit);
  expect_same_bits_on_every_level<double>(emit);
}

// The cost of GELU, SoftMax and similar ops beside memory traffic: instructions of the whole loop, including load, store and
// loop control.
TEST(VectorMathCost, StaysNearTheSpeedOfMemoryOnAvx512) {
  const auto levels = runnable_levels();
  if (std::find(levels.begin(), levels.end(), "x86-64-v4") == levels.end()) GTEST_SKIP() << "this machine has no AVX-512";
  const std::map<std::string, int> bounds{{"exp", 21}, {"tanh", 27}, {"sigmoid", 29}, {"log", 34}, {"erf", 54}};
  for (const Function& function : functions()) {
    const int count = jit_of("x86-64-v4").instruction_count(function.emit, element<float>(), element<float>(), 16);
    if (std::getenv("LAMINA_PRINT_ULP")) std::printf("%s: %d instructions\n", function.name.c_str(), count);
    const auto bound = bounds.find(function.name);
    EXPECT_TRUE(bound == bounds.end() || count <= bound->second) << function.name << " takes " << count;
  }
}

INSTANTIATE_TEST_SUITE_P(All, VectorMath, ::testing::ValuesIn(functions()), [](const auto& test) {
  std::string name = test.param.name;
  std::replace_if(name.begin(), name.end(), [](char c) { return !std::isalnum(static_cast<unsigned char>(c)); }, '_');
  return name;
});

}  // namespace
}  // namespace lamina::cpu::testing
