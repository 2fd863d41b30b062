// Conversions between f32 or f64 and stored elements: small floats and integers. Rounding is half to even. A small float has m
// mantissa bits and exponent bias B, float has 23 and 127; its `code` is its bits without the sign. NaN becomes the canonical
// quiet NaN with the same sign. Integers saturate, and NaN becomes 0.
#pragma once

#include "interface/small_float.h"
#include "kernels/math/rounding.h"

namespace lamina::kernel::math {

inline constexpr uint32_t kFloatSign = 0x80000000, kFloatMagnitude = 0x7fffffff, kFloatInfinity = 0x7f800000,
                          kFloatQuiet = 0x00400000;

// bf16 differs from float only in length. Ties to even: adds half a step minus one, plus one if the remaining part is odd.
// The upper half of the result is the code of a number.
template <typename L>
Bits<L> bf16_in_upper_half(const Real<L>& x) {
  const Bits<L> all = bits(x);
  const Bits<L> odd = (all >> 16) & 1;
  return all + (odd + 0x7fff);
}

template <typename L>
Bits<L> bf16_from(const Real<L>& x) {
  const Bits<L> rounded = bf16_in_upper_half(x) >> 16;
  return select(is_nan(x), ((bits(x) & kFloatSign) >> 16) | small_float(DataType::bf16).nan, rounded);
}

// The bits of x, a float, in the type. Normal results are rounded as integers. Subnormal results are rounded by adding the
// float whose last place is the smallest subnormal. A carry out of the mantissa increments the exponent.
template <typename L>
Bits<L> small_float_from(const Real<L>& x, DataType type) {
  if (type == DataType::bf16) return bf16_from(x);
  const SmallFloat format = small_float(type);
  const int dropped = 23 - format.mantissa_bits;
  const uint32_t rebias = static_cast<uint32_t>(127 - format.bias) << 23, half = (1U << (dropped - 1)) - 1;
  const Bits<L> all = bits(x), magnitude = all & kFloatMagnitude;
  const Bits<L> odd = (magnitude >> dropped) & 1;
  const Bits<L> normal = ((magnitude + odd) + (half - rebias)) >> dropped;
  const double shifter = std::ldexp(1.0, 23 + 1 - format.bias - format.mantissa_bits);
  const Bits<L> subnormal = bits(from_bits(magnitude) + shifter) - x.bits_of(shifter);
  Bits<L> code = select(magnitude < x.bits_of(std::ldexp(1.0, 1 - format.bias)), subnormal, normal);
  code = select(code > format.infinity, code.like(format.infinity), code);
  if (format.has_infinity()) code = select(magnitude > kFloatInfinity, code.like(format.nan), code);
  return ((all & kFloatSign) >> (32 - format.bits)) | code;
}

// Moves code and sign to float's bit positions and corrects the bias. A subnormal gets a temporary exponent, which an exact
// subtraction removes; no operand is a subnormal float.
template <typename L>
Real<L> from_small_float(const Bits<L>& raw, DataType type) {
  if (type == DataType::bf16) return from_bits(raw << 16);
  const SmallFloat format = small_float(type);
  const int shift = 23 - format.mantissa_bits;
  const Bits<L> sign = (raw & format.sign()) << (32 - format.bits), code = raw & (format.sign() - 1), moved = code << shift;
  const Bits<L> normal = moved + (static_cast<uint32_t>(127 - format.bias) << 23);
  const Real<L> with_exponent = from_bits(normal + (1U << 23));
  const Bits<L> subnormal = bits(with_exponent - std::ldexp(1.0, 1 - format.bias));
  Bits<L> result = select(code < (1U << format.mantissa_bits), subnormal, normal);
  if (format.has_infinity()) {
    const Bits<L> special = moved | kFloatInfinity;
    const Bits<L> infinite_or_nan = select(code > format.infinity, special | kFloatQuiet, special);
    result = select(code > format.infinity - 1, infinite_or_nan, result);
  } else {
    result = select(code > format.nan - 1, code.like(kFloatInfinity | kFloatQuiet), result);
  }
  return from_bits(result | sign);
}

// Rounds double to float to odd: toward zero, with the last bit set if the result is inexact. A second rounding then equals a
// single one. NaN stays a NaN.
template <typename L>
Real<L> to_odd(const L& lanes, const Real<typename L::Wide>& x) {
  const Real<L> nearest{&lanes, lanes.narrow(x.value)};
  const Real<typename L::Wide> back{x.lanes, lanes.widen(nearest.value)};
  const Mask<L> is_exact{&lanes, (back == x).value}, is_too_far{&lanes, (abs(back) > abs(x)).value};
  const Bits<L> all = bits(nearest);
  const Bits<L> toward_zero = select(is_too_far, all - 1, all);
  return select(is_exact, nearest, from_bits(toward_zero | 1));
}

// An integer of 64 bits to double, exactly up to 2^53; beyond that to odd: the last 11 bits become one, which is set if any of
// them was.
template <typename L>
Real<L> odd_from_integer(const Bits<L>& x, bool is_signed) {
  constexpr int kTooMany = 64 - 53;
  constexpr uint64_t kExact = uint64_t{1} << 53, kLost = (uint64_t{1} << kTooMany) - 1;
  const Mask<L> is_large = is_signed ? (x + kExact) > 2 * kExact : x > kExact;
  const Bits<L> any_lost = select(is_zero(x & kLost), x.like(0), x.like(1));
  const Bits<L> shortened = (is_signed ? signed_shift_right(x, kTooMany) : x >> kTooMany) | any_lost;
  const Real<L> exact = to_real(select(is_large, shortened, x));
  return exact * select(is_large, static_cast<double>(kLost + 1), exact.like(1));
}

// For ranges that fit the mantissa: adding 1.5 2^mantissa_bits rounds to an integer, which is then in the lowest bits.
template <typename L>
Bits<L> narrow_integer(const Real<L>& x, int width, bool is_signed) {
  const double low = is_signed ? -std::ldexp(1.0, width - 1) : 0, range = std::ldexp(1.0, width);
  const Real<L> known = select(is_nan(x), 0.0, x);
  return bits(at_most(at_least(known, low), low + range - 1) + std::ldexp(1.5, x.mantissa_bits()));
}

// The same integer as a number. NaN becomes 0 by a comparison with 0, if that is the least integer.
template <typename L>
Real<L> narrow_integer_as_real(const Real<L>& x, int width, bool is_signed) {
  const double low = is_signed ? -std::ldexp(1.0, width - 1) : 0, range = std::ldexp(1.0, width);
  const Real<L> from_low = is_signed ? at_least(select(is_nan(x), 0.0, x), low) : select(x > 0.0, x, 0.0);
  const double shifter = std::ldexp(1.5, x.mantissa_bits());
  return (at_most(from_low, low + range - 1) + shifter) - shifter;
}

// For ranges whose largest value may not be a floating-point number: converts values inside, and returns the ends for others.
template <typename L>
auto wide_integer(const Real<L>& x, int width, bool is_signed) {
  const double end = std::ldexp(1.0, is_signed ? width - 1 : width), begin = is_signed ? -end : 0;
  const Real<L> inside = select((x < end) & (x >= begin), x, 0.0);
  return x.lanes->to_integer(round_half_even(inside).value, {width, is_signed}, (x >= end).value, (x < begin).value);
}

// Whether narrow_integer converts to integers of `width` bits.
template <typename L>
bool fits_mantissa(const Real<L>& x, int width) {
  return width < x.mantissa_bits();
}

}  // namespace lamina::kernel::math
