// Functions of one number that forward and backward ops share, accurate for every finite argument. At -inf, GELU and Mish are
// NaN, like their formula (-inf * 0).
#pragma once

#include <cmath>
#include <numbers>

namespace lamina::reference {

// min(max(x, low), high); NaN stays NaN.
inline double clamped(double x, double low, double high) { return x < low ? low : x > high ? high : x; }

inline double sigmoid(double x) {
  if (x >= 0) return 1 / (1 + std::exp(-x));
  const double e = std::exp(x);
  return e / (1 + e);
}

// ln(1 + e^x) without overflow.
inline double log_one_plus_exp(double x) { return (x > 0 ? x : 0) + std::log1p(std::exp(-std::fabs(x))); }

// tanh(ln(1 + e^x)) = n / (n + 2) with n = e^x * (e^x + 2). From x = 20 on it rounds to 1.
inline double tanh_of_softplus(double x) {
  if (x > 20) return 1;
  const double e = std::exp(x);
  const double n = e * (e + 2);
  return n / (n + 2);
}

inline double mish(double x) { return x * tanh_of_softplus(x); }

// The normal distribution function, (1 + erf(x / sqrt 2)) / 2 without cancellation for negative x.
inline double normal_cdf(double x) { return 0.5 * std::erfc(-x * (1 / std::numbers::sqrt2)); }
inline double normal_pdf(double x) { return std::exp(-0.5 * x * x) / std::sqrt(2 * std::numbers::pi); }

inline double gelu_erf(double x) { return x * normal_cdf(x); }

// 2 * sqrt(2 / pi) * (x + 0.044715 * x^3). The factor 2 is there because (1 + tanh(u)) / 2 is sigmoid(2 * u).
inline double gelu_tanh_argument(double x) { return 2 * std::sqrt(2 / std::numbers::pi) * x * (1 + 0.044715 * x * x); }
inline double gelu_tanh(double x) { return x * sigmoid(gelu_tanh_argument(x)); }

// Ties to even, independent of the thread's rounding mode.
inline double round_half_even(double x) {
  const double below = std::floor(x);
  const double rest = x - below;
  if (rest != 0.5) return std::copysign(rest < 0.5 || rest != rest ? below : below + 1, x);
  return std::copysign(std::fmod(below, 2.0) == 0 ? below : below + 1, x);
}

}  // namespace lamina::reference
