// The dialect's functions for the host: the same text that GPU programs contain, compiled as C++.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>

#include "kernels/math/host_lanes.h"

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
inline uint32_t lm_bits_f32(float x) { return std::bit_cast<uint32_t>(x); }
inline uint64_t lm_bits_f64(double x) { return std::bit_cast<uint64_t>(x); }
inline float lm_real_f32(uint32_t bits) { return std::bit_cast<float>(bits); }
inline double lm_real_f64(uint64_t bits) { return std::bit_cast<double>(bits); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wunused-function"

#define LM_FN inline

#define REAL float
#define BITS lm_u32
#define LM(name) name##_f32
#define K(literal) literal##f
#define SHIFTER 0x1.8p23f
#include "kernels/dialect/real.inl"
#undef REAL
#undef BITS
#undef LM
#undef K
#undef SHIFTER

#define REAL double
#define BITS lm_u64
#define LM(name) name##_f64
#define K(literal) literal
#define SHIFTER 0x1.8p52
#include "kernels/dialect/real.inl"
#undef REAL
#undef BITS
#undef LM
#undef K
#undef SHIFTER

#include "kernels/dialect/convert.inl"
#include "kernels/dialect/convert_f64.inl"
#include "kernels/dialect/philox.inl"

#undef LM_FN
#pragma GCC diagnostic pop

inline float lm_round_half_even_f32(float x) { return math::host_round_half_even(x); }
inline double lm_round_half_even_f64(double x) { return math::host_round_half_even(x); }

}  // namespace lamina::kernel::dialect
