// The dialect's functions for the host: the same text that GPU programs contain, compiled as C++.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>

#include "kernels/dialect/trigonometry.h"
#include "kernels/polynomials.h"

namespace lamina::kernel::dialect {

using lm_f32 = float;
using lm_f64 = double;
using lm_s8 = int8_t;
using lm_u8 = uint8_t;
using lm_u16 = uint16_t;
using lm_s32 = int32_t;
using lm_u32 = uint32_t;
using lm_s64 = int64_t;
using lm_u64 = uint64_t;

inline float lm_fma_f32(float a, float b, float c) { return std::fma(a, b, c); }
inline double lm_fma_f64(double a, double b, double c) { return std::fma(a, b, c); }
inline float lm_sqrt_f32(float x) { return std::sqrt(x); }
inline double lm_sqrt_f64(double x) { return std::sqrt(x); }
inline float lm_floor_f32(float x) { return std::floor(x); }
inline double lm_floor_f64(double x) { return std::floor(x); }
inline uint32_t lm_bits_f32(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t lm_bits_f64(double x) { return std::bit_cast<uint64_t>(x); }
inline float lm_real_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double lm_real_f64(uint64_t bits) { return std::bit_cast<double>(bits); }

template <typename Real, size_t N>
Real horner(const double (&c)[N], Real x) {
  auto total = static_cast<Real>(c[N - 1]);
  for (size_t i = N - 1; i-- > 0;) total = std::fma(total, x, static_cast<Real>(c[i]));
  return total;
}

#define LAMINA_POLYNOMIAL(name)                                                              \
  inline float lm_##name##_f32(float x) { return horner<float>(kFloatPolynomials.name, x); } \
  inline double lm_##name##_f64(double x) { return horner<double>(kDoublePolynomials.name, x); }
LAMINA_POLYNOMIAL(exp_tail)
LAMINA_POLYNOMIAL(log_tail)
LAMINA_POLYNOMIAL(erf_tail)
LAMINA_POLYNOMIAL(mills_top)
LAMINA_POLYNOMIAL(mills_rest)

#define LAMINA_TRIGONOMETRY(name) \
  inline double lm_##name##_f64(double x) { return horner<double>(kTrigonometry.name, x); }
LAMINA_TRIGONOMETRY(short_sin_tail)
LAMINA_TRIGONOMETRY(short_cos_tail)
LAMINA_TRIGONOMETRY(sin_tail)
LAMINA_TRIGONOMETRY(cos_tail)
#undef LAMINA_TRIGONOMETRY
inline double lm_two_over_pi_f64(int group) { return kTwoOverPi[group]; }

// Joins neighbouring terms in pairs until one is left, which keeps the dependence chain short.
inline float lm_cdf_root_f32(float x) {
  float terms[std::size(kFloatPolynomials.cdf_root) - 1];
  size_t count = std::size(terms);
  for (size_t i = 0; i < count; ++i) terms[i] = static_cast<float>(kFloatPolynomials.cdf_root[i + 1]);
  for (float power = x; count > 1; power = power * power) {
    for (size_t i = 0; i < count; i += 2) terms[i / 2] = i + 1 < count ? std::fma(terms[i + 1], power, terms[i]) : terms[i];
    count = (count + 1) / 2;
  }
  return std::fma(x, terms[0], static_cast<float>(kFloatPolynomials.cdf_root[0]));
}
#undef LAMINA_POLYNOMIAL

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"

#define LM_FN inline

#define REAL float
#define BITS lm_u32
#define SBITS lm_s32
#define LM(name) name##_f32
#define K(literal) literal##f
#define PICK(a, b) a##f
#define MANTISSA 23
#define BIAS 127
#define SINGLE 1
#include "kernels/dialect/real.inl"
#undef REAL
#undef BITS
#undef SBITS
#undef LM
#undef K
#undef PICK
#undef MANTISSA
#undef BIAS
#undef SINGLE

#define REAL double
#define BITS lm_u64
#define SBITS lm_s64
#define LM(name) name##_f64
#define K(literal) literal
#define PICK(a, b) b
#define MANTISSA 52
#define BIAS 1023
#define SINGLE 0
#include "kernels/dialect/real.inl"
#undef REAL
#undef BITS
#undef SBITS
#undef LM
#undef K
#undef PICK
#undef MANTISSA
#undef BIAS
#undef SINGLE

#include "kernels/dialect/convert.inl"
#include "kernels/dialect/convert_f64.inl"
#include "kernels/dialect/philox.inl"
#include "kernels/dialect/power.inl"
#include "kernels/dialect/trigonometry.inl"

#undef LM_FN
#pragma GCC diagnostic pop

}  // namespace lamina::kernel::dialect
