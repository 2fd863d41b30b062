// Sine and cosine, and the angle of a point. Sine and cosine are always computed in double: the angle is x minus the nearest
// number of quarter turns. sin(r) = r + r^3 sin_tail(r^2) and cos(r) = 1 - r^2 / 2
// + r^4 cos_tail(r^2) for |r| up to slightly more than pi / 4, by Taylor series. The truncation error is below 2^-36 of a
// float result and below 2^-57 of a double result.
#pragma once

#include <cstdint>

#include "kernels/math/lanes.h"
#include "kernels/math/pair.h"
#include "kernels/math/polynomials.h"
#include "kernels/math/rounding.h"

namespace lamina::kernel::math {

inline constexpr struct {
  double short_sin_tail[5] = {-0x1.5555555555555p-3, 0x1.1111111111111p-7, -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
                              -0x1.ae64567f544e4p-26};
  double short_cos_tail[5] = {0x1.5555555555555p-5, -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22,
                              0x1.1eed8eff8d898p-29};
  double sin_tail[8] = {-0x1.5555555555555p-3,  0x1.1111111111111p-7,  -0x1.a01a01a01a01ap-13, 0x1.71de3a556c734p-19,
                        -0x1.ae64567f544e4p-26, 0x1.6124613a86d09p-33, -0x1.ae7f3e733b81fp-41, 0x1.952c77030ad4ap-49};
  double cos_tail[8] = {0x1.5555555555555p-5,  -0x1.6c16c16c16c17p-10, 0x1.a01a01a01a01ap-16, -0x1.27e4fb7789f5cp-22,
                        0x1.1eed8eff8d898p-29, -0x1.93974a8c07c9dp-37, 0x1.ae7f3e733b81fp-45, -0x1.6827863b97d97p-53};
} kTrigonometry;

// pi / 2 as a sum of three doubles.
inline constexpr double kHalfPiHigh = 0x1.921fb54442d18p+0, kHalfPiLow = 0x1.1a62633145c07p-54,
                        kHalfPiLast = -0x1.f1976b7ed8fbcp-110;
inline constexpr double kInverseHalfPi = 0x1.45f306dc9c883p-1;

// Up to this |x| the angle is x - n pi / 2. Beyond it the angle comes from the digits of 2 / pi.
inline constexpr double kNearCircles = 0x1p27;

// The fractional bits of 2 / pi in groups of 24, as many as the largest double needs.
inline constexpr uint32_t kTwoOverPi[49] = {
    0xa2f983, 0x6e4e44, 0x1529fc, 0x2757d1, 0xf534dd, 0xc0db62, 0x95993c, 0x439041, 0xfe5163, 0xabdebb,
    0xc561b7, 0x246e3a, 0x424dd2, 0xe00649, 0x2eea09, 0xd1921c, 0xfe1deb, 0x1cb129, 0xa73ee8, 0x8235f5,
    0x2ebb44, 0x84e99c, 0x7026b4, 0x5f7e41, 0x3991d6, 0x398353, 0x39f49c, 0x845f8b, 0xbdf928, 0x3b1ff8,
    0x97ffde, 0x05980f, 0xef2f11, 0x8b5a0a, 0x6d1f6d, 0x367ecf, 0x27cb09, 0xb74f46, 0x3f669e, 0x5fea2d,
    0x7527ba, 0xc7ebe5, 0xf17b3d, 0x0739f7, 0x8a5292, 0xea6bfb, 0x5fb11f, 0x8d5d08, 0x560330};

// The groups that affect the result. Float uses the first groups. Double uses the first groups below kVeryFar; from there on
// it starts at kFirstOfVeryFar, because earlier groups contribute whole turns, and x is scaled so that no product overflows.
inline constexpr int kGroupsOfFloat = 9, kGroupsOfDouble = 32, kFirstOfVeryFar = 17;
inline constexpr double kVeryFar = 0x1p500, kScaleOfVeryFar = 0x1p-600;

// The groups as parts of 2 / pi, and of 2 / pi divided by the scale of very far angles.
inline double group_of_near(int i) { return std::ldexp(kTwoOverPi[i], -24 * (i + 1)); }
inline double group_of_very_far(int i) { return std::ldexp(kTwoOverPi[kFirstOfVeryFar + i], 168 - 24 * i); }

// An angle as a number of quarter turns and a remainder, with |hi + lo| at most slightly more than pi / 4.
template <typename L>
struct Angle {
  Real<L> hi, lo;
  Bits<L> quarters;  // in the two lowest bits
};

// Adding this number moves the nearest integer to the lowest bits.
inline constexpr double kIntegerShifter = 0x1.8p52;

// x - n pi / 2. The first product is subtracted exactly.
template <typename L>
Angle<L> near_angle(const Real<L>& x) {
  const Real<L> shifted = fma(x, kInverseHalfPi, kIntegerShifter);
  const Real<L> n = shifted - kIntegerShifter;
  const Pair<L> second = product(n, kHalfPiLow);
  const Pair<L> sum = exact_sum(fma(-n, kHalfPiHigh, x), -second.hi);
  const Pair<L> left = fast_sum(sum.hi, sum.lo - fma(n, kHalfPiLast, second.lo));
  return {left.hi, left.lo, bits(shifted)};
}

// A sum of three parts, of which the first is always close to 0: whole turns are removed.
template <typename L>
using Turns = std::array<Real<L>, 3>;

template <typename L>
Turns<L> add_turns(const Turns<L>& total, const Real<L>& turns) {
  const Pair<L> a = exact_sum(total[0], fma(round_half_even(turns * 0.25), -4, turns));
  const Pair<L> b = exact_sum(total[1], a.lo);
  return {a.hi, b.hi, total[2] + b.lo};
}

// Computes x 2 / pi modulo 4 from exact products of parts of x with groups of 24 bits, and multiplies it by pi / 2.
template <typename L>
Turns<L> turns_of_float(const Real<L>& x) {
  const Real<L> zero = x.like(0);
  return repeat(kGroupsOfFloat, Turns<L>{zero, zero, zero}, [&](const typename L::Index& i, const Turns<L>& total) {
    return add_turns(total, x * table_entry(x, kGroupsOfFloat, i, group_of_near));
  });
}
template <typename L>
Turns<L> turns_of_double(const Real<L>& x) {
  const Mask<L> very_far = x >= kVeryFar;
  const Real<L> scaled = select(very_far, x * kScaleOfVeryFar, x), zero = x.like(0);
  const Real<L> upper = from_bits(bits(scaled) & ~((uint64_t{1} << 27) - 1)), lower = scaled - upper;
  return repeat(kGroupsOfDouble, Turns<L>{zero, zero, zero}, [&](const typename L::Index& i, const Turns<L>& total) {
    const Real<L> group = select(very_far, table_entry(x, kGroupsOfDouble, i, group_of_very_far),
                                 table_entry(x, kGroupsOfDouble, i, group_of_near));
    return add_turns(add_turns(total, upper * group), lower * group);
  });
}
template <typename L>
Angle<L> far_angle(const Real<L>& x, bool single) {
  const auto [high, middle, low] = single ? turns_of_float(x) : turns_of_double(x);
  const Real<L> shifted = high + kIntegerShifter;
  const Pair<L> a = exact_sum(high - (shifted - kIntegerShifter), middle);
  const Pair<L> quarter = exact_sum(a.hi, a.lo + low);
  const Pair<L> angle = product(quarter.hi, kHalfPiHigh);
  const Real<L> rest = fma(quarter.hi, kHalfPiLow, quarter.lo * kHalfPiHigh);
  const Pair<L> left = fast_sum(angle.hi, angle.lo + rest);
  return {left.hi, left.lo, bits(shifted)};
}

template <typename L>
Real<L> sin_of(const Angle<L>& angle, bool single) {
  const Real<L> square = angle.hi * angle.hi, cube = square * angle.hi;
  if (single) return fma(cube, horner(kTrigonometry.short_sin_tail, square), angle.hi);
  return angle.hi + fma(cube, horner(kTrigonometry.sin_tail, square), fma(square * -0.5, angle.lo, angle.lo));
}

template <typename L>
Real<L> cos_of(const Angle<L>& angle, bool single) {
  const Real<L> square = angle.hi * angle.hi, half_square = square * 0.5, fourth = square * square;
  const Real<L> most = 1 - half_square;
  const Real<L> lost = (1 - most) - half_square;
  if (single) return most + fma(fourth, horner(kTrigonometry.short_cos_tail, square), lost);
  return most + (lost + fma(fourth, horner(kTrigonometry.cos_tail, square), -(angle.hi * angle.lo)));
}

// The value at an angle `ahead` quarter turns after the sine's. The sine has the sign of x.
template <typename L>
Real<L> at_angle(const Real<L>& x, const Angle<L>& angle, int ahead, bool single) {
  const Bits<L> quarters = angle.quarters + static_cast<uint64_t>(ahead);
  const Real<L> value = select(is_zero(quarters & 1), sin_of(angle, single), cos_of(angle, single));
  Bits<L> sign = (quarters << 62) & x.sign_bit();
  if (ahead == 0) sign = sign ^ (bits(x) & x.sign_bit());
  return from_bits(bits(value) ^ sign);
}

// In double. `ahead`: 0 for the sine, 1 for the cosine. `single`: the result is rounded to float.
template <typename L>
Real<L> circular(const Real<L>& x, int ahead, bool single) {
  const Real<L> a = abs(x);
  const Real<L> usual = at_angle(x, near_angle(a), ahead, single);
  // Infinities and NaN use this path too, and their results are replaced.
  return with_rare(!(a <= kNearCircles), usual, [&] {
    const Real<L> far = at_angle(x, far_angle(a, single), ahead, single);
    return select(is_nan(x), x + x, select(a == HUGE_VAL, NAN, far));
  });
}

template <typename L>
Real<L> sin(const Real<L>& x) {
  return in_double(x, [](const auto& wide, bool single) { return circular(wide, 0, single); });
}
template <typename L>
Real<L> cos(const Real<L>& x) {
  return in_double(x, [](const auto& wide, bool single) { return circular(wide, 1, single); });
}

// The angle of the point (x, y), as C's atan2: atan of the smaller of |x| and |y| divided by the larger, turned by 0, pi / 2 or
// pi.
template <typename L>
Real<L> atan2(const Real<L>& y, const Real<L>& x) {
  const Real<L> height = abs(y), width = abs(x);
  const Mask<L> steep = height > width, is_left = !is_zero(bits(x) & x.sign_bit());
  const Real<L> smaller = select(steep, width, height), larger = select(steep, height, width);
  const double pi = x.pick(0x1.921fb6p+1, 2 * kHalfPiHigh), pi_low = x.pick(-0x1.777a5cp-24, 2 * kHalfPiLow);
  const Real<L> t = smaller / larger;
  const Real<L> square = t * t;
  Real<L> angle = fma(t * square, horner(kFloatPolynomials.atan_tail, kDoublePolynomials.atan_tail, square), t);
  // Also of two zeros and of two infinities.
  angle = select(height == width, select(height == 0, height, pi / 4), angle);
  const Real<L> turn = select(steep, 0.5, select(is_left, 1.0, x.like(0)));
  const Real<L> turned = select(steep, select(is_left, angle, -angle), select(is_left, -angle, angle));
  return copysign(fma(turn, pi, fma(turn, pi_low, turned)), y);
}

}  // namespace lamina::kernel::math
