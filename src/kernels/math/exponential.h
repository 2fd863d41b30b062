// The exponential family. Notation: y = k ln 2 + r, z = exp(r) - 1, s = 2^k, so exp(y) = s + s z. Sums like s + s z - 1 are
// written fma(s, z, s - 1). s - 1 is exact in the relevant range, so there is one rounding.
//
// Tails end at the smallest normal number: exp, sigmoid, erfc, normal_cdf and gelu are 0 beyond, and no step of a tail has
// a subnormal number (docs/decisions/0081-tails-end-at-normal-numbers.md).
#pragma once

#include <numbers>

#include "kernels/math/lanes.h"
#include "kernels/math/polynomials.h"

namespace lamina::kernel::math {

// ln 2 in two parts, and for double a third. k times the first is exact for every k that a reduction produces.
inline constexpr double kLn2HighFloat = 0x1.62e4p-1, kLn2LowFloat = 0x1.7f7d1cp-20;
inline constexpr double kLn2HighDouble = 0x1.62e42feep-1, kLn2LowDouble = 0x1.a39ef35793c76p-33;
inline constexpr double kLn2LastDouble = 0x1.cc01f97b57a08p-87;

// With |r| at most slightly more than ln(2) / 2.
template <typename L>
struct ExpReduction {
  Real<L> r;
  Real<L> k;     // an integer
  Bits<L> bits;  // its lowest bits are k + offset
};

// Adds 1.5 2^mantissa_bits, which moves the nearest integer, plus the offset, to the lowest bits. `offset`: see
// scale_by_power and power_of_two. `least_k` bounds k from below, for callers that accept a larger |r| there.
template <typename L>
struct ShiftedInteger {
  Real<L> shifted, k;
};
template <typename L>
ShiftedInteger<L> nearest_power(const Real<L>& y, int offset, double least_k = -HUGE_VAL) {
  const double shifter = std::ldexp(1.5, y.mantissa_bits()) + offset;
  Real<L> shifted = fma(y, std::numbers::log2e, shifter);
  if (std::isfinite(least_k)) shifted = at_least(shifted, shifter + least_k);
  return {shifted, shifted - shifter};
}

template <typename L>
ExpReduction<L> reduce_exp(const Real<L>& y, int offset, double least_k = -HUGE_VAL) {
  const auto [shifted, k] = nearest_power(y, offset, least_k);
  const Real<L> r = fma(k, -y.pick(kLn2HighFloat, kLn2HighDouble), y);
  return {fma(k, -y.pick(kLn2LowFloat, kLn2LowDouble), r), k, bits(shifted)};
}

// `low` is a correction to y below its last place.
template <typename L>
ExpReduction<L> reduce_exp_of_pair(const Real<L>& y, const Real<L>& low, int offset) {
  const auto [shifted, k] = nearest_power(y, offset);
  const Real<L> r = fma(k, -y.pick(kLn2HighFloat, kLn2HighDouble), y);
  return {r + fma(k, -y.pick(kLn2LowFloat, kLn2LowDouble), low), k, bits(shifted)};
}

template <typename L>
Real<L> exp_tail(const Real<L>& r) {
  return horner(kFloatPolynomials.exp_tail, kDoublePolynomials.exp_tail, r);
}
// exp(r), and exp(r) - 1 with a small relative error, for the reduced r.
template <typename L>
Real<L> exp_polynomial(const Real<L>& r) {
  return fma(fma(exp_tail(r), r, 1.0), r, 1.0);
}
template <typename L>
Real<L> expm1_polynomial(const Real<L>& r) {
  return fma(exp_tail(r) * r, r, r);
}

// x 2^k rounded once, including overflow and underflow. Requires that the reduction's offset is twice the bias, and |k| below
// 1.05 bias + 25. Without an instruction for it, two factors with about half of the exponent each, both normal numbers. The
// first product is exact, the second rounds.
template <typename L>
Real<L> scale_by_power(const Real<L>& x, const ExpReduction<L>& e) {
  if (const auto scaled = x.lanes->scale_by_power(x.value, e.k.value)) return {x.lanes, *scaled};
  const Bits<L> half = e.bits >> 1;
  return x * from_bits(half << x.mantissa_bits()) * from_bits((e.bits - half) << x.mantissa_bits());
}

// 2^(k + shift). The reduction's offset must be bias + shift, and the power a normal number.
template <typename L>
Real<L> power_of_two(const ExpReduction<L>& e) {
  return from_bits(e.bits << e.r.mantissa_bits());
}

// The bits of scale_by_power for a normal power and a normal result, by fewer operations where no instruction does it. The
// reduction's offset must be the bias.
template <typename L>
Real<L> scale_down(const Real<L>& x, const ExpReduction<L>& e) {
  if (const auto scaled = x.lanes->scale_by_power(x.value, e.k.value)) return {x.lanes, *scaled};
  return x * power_of_two(e);
}

// Arguments below give 0. At the bound, exp is slightly more than the smallest normal number.
template <typename L>
double exp_low(const Real<L>& x) {
  return x.pick(-87.3365, -708.3964);
}
// Arguments above give infinity.
template <typename L>
double exp_high(const Real<L>& x) {
  return x.pick(89, 710);
}

template <typename L>
Real<L> exp(const Real<L>& x) {
  const ExpReduction<L> e = reduce_exp(at_least(at_most(x, exp_high(x)), exp_low(x)), 2 * x.bias());
  return select(x < exp_low(x), 0.0, scale_by_power(exp_polynomial(e.r), e));
}

// The same bits as exp, for an x that is at most 0, or NaN.
template <typename L>
Real<L> exp_of_at_most_zero(const Real<L>& x) {
  const ExpReduction<L> e = reduce_exp(at_least(x, exp_low(x)), x.bias());
  return select(x < exp_low(x), 0.0, scale_down(exp_polynomial(e.r), e));
}

template <typename L>
Real<L> expm1(const Real<L>& x) {
  // Uses half of s, so that 2^k stays finite. Below the lower bound, -1 is the nearest value.
  const ExpReduction<L> e = reduce_exp(at_most(at_least(x, x.pick(-18, -38)), exp_high(x)), x.bias() - 1);
  const Real<L> half_s = power_of_two(e);
  const Real<L> result = fma(half_s, expm1_polynomial(e.r), half_s - 0.5) * 2.0;
  // Halving would lose bits of subnormals, and a sum is never -0. For such x, expm1(x) = x (1 + x / 2) rounds to x.
  return select(abs(x) < std::ldexp(1.0, -2 - x.mantissa_bits()), x, result);
}

// tanh(a) = (1 - exp(-2a)) / (1 + exp(-2a)). Beyond the bound, 1 is the nearest value.
template <typename L>
Real<L> tanh(const Real<L>& x) {
  const ExpReduction<L> e = reduce_exp(at_most(abs(x), x.pick(10, 22)) * -2.0, x.bias());
  const Real<L> s = power_of_two(e);
  const Real<L> z = expm1_polynomial(e.r);
  return copysign(fma(s, z, s - 1) / fma(s, z, s + 1), x);
}

// 1 / (1 + exp(-x)).
template <typename L>
Real<L> sigmoid(const Real<L>& x) {
  // For large x, 1 is the nearest value. k is limited to the range in which 1 + s is exact; the error of r there is
  // negligible against 1.
  const Real<L> y = at_most(at_least(-x, x.pick(-17.5, -37.5)), -exp_low(x));
  const ExpReduction<L> e = reduce_exp(y, x.bias(), -x.mantissa_bits());
  const Real<L> s = power_of_two(e);
  const Real<L> sum = s + 1.0;
  const Real<L> rest = 1.0 - (sum - s);  // for large s
  return select(x < exp_low(x), 0.0, 1.0 / (sum + fma(s, expm1_polynomial(e.r), rest)));
}

// exp(-a^2 / 2), with the square in two parts: otherwise the relative error of a^2 would be multiplied by a^2 / 2.
template <typename L>
ExpReduction<L> reduce_gauss(const Real<L>& a, int offset) {
  const Real<L> square = a * a;
  const Real<L> rest = fma(a, a, -square);
  return reduce_exp_of_pair(square * -0.5, rest * -0.5, offset);
}

// normal_cdf(-a) = 2^k times the result, for 0 <= a <= gauss_end, where it is still a normal number.
template <typename L>
Real<L> gauss_tail(const Real<L>& a, const ExpReduction<L>& e) {
  constexpr double kSqrtTwoPi = 0x1.40d931ff62706p+1;
  const Real<L> top = horner(kFloatPolynomials.mills_top, kDoublePolynomials.mills_top, a);
  const Real<L> rest = horner(kFloatPolynomials.mills_rest, kDoublePolynomials.mills_rest, a);
  const Real<L> mills = top / fma(a, fma(top, kSqrtTwoPi, rest), 1.5);
  return fma(expm1_polynomial(e.r), mills, mills);
}
template <typename L>
double gauss_end(const Real<L>& x) {
  return x.pick(12.949, 37.519);
}

template <typename L>
Real<L> erf(const Real<L>& x) {
  const Real<L> near_zero = fma(x, horner(kFloatPolynomials.erf_tail, kDoublePolynomials.erf_tail, x * x), x);
  // 1 - 2 normal_cdf(-sqrt(2) |x|). Beyond the bound, 1 is the nearest value. The exponent's offset contains the factor 2.
  const Real<L> a = at_most(abs(x) * std::numbers::sqrt2, x.pick(6, 9));
  const ExpReduction<L> e = reduce_gauss(a, x.bias() + 1);
  const Real<L> far = fma(-power_of_two(e), gauss_tail(a, e), 1.0);
  return select(abs(x) < 1.0, near_zero, copysign(far, x));
}

// 2 normal_cdf(-sqrt(2) x), with exp(-x^2) from the square of x itself.
template <typename L>
Real<L> erfc(const Real<L>& x) {
  const double end = x.pick(9.1945, 26.543);
  const Real<L> y = at_most(abs(x), end);
  const Real<L> square = y * y;
  const Real<L> rest = fma(y, y, -square);
  const ExpReduction<L> e = reduce_exp_of_pair(-square, -rest, x.bias());
  const Real<L> right = scale_down(gauss_tail(y * std::numbers::sqrt2, e) * 2, e);
  return select(x < 0, 2 - right, select(x > end, 0.0, right));
}

// Keeps a small relative error in the left tail, down to the smallest normal number of the format.
template <typename L>
Real<L> cdf_with_tails(const Real<L>& x) {
  const Real<L> a = at_most(abs(x), gauss_end(x));
  const ExpReduction<L> e = reduce_gauss(a, x.bias());
  const Real<L> left = scale_down(gauss_tail(a, e), e);
  return select(x > 0, 1 - left, select(x < -gauss_end(x), 0.0, left));
}

// sqrt(2 normal_cdf(-a)) for a float with 0 <= a <= kRootEnd, without a division or an exponential. The eighth root of the tail
// is a polynomial 1 + u. u is small where the tail is large, so the rounding errors that the powers multiply are small too.
inline constexpr double kRootEnd = 6;
template <typename L>
Real<L> root_of_tail(const Real<L>& a) {
  const auto& c = kFloatPolynomials.cdf_root;
  const Real<L> square = a * a;
  const Real<L> odd = fma(square, fma(square, fma(square, c[6], c[4]), c[2]), c[0]);
  const Real<L> even = fma(square, fma(square, fma(square, c[7], c[5]), c[3]), c[1]);
  const Real<L> u = fma(a, even, odd) * a;
  const Real<L> fourth_root = fma(u, u + 2, 1);
  return fourth_root * fourth_root;
}

// The cumulative distribution of the standard normal, erfc(-x / sqrt(2)) / 2. In double the relative error is a few ULP
// everywhere. In float the error is at most 2.3 ULP of 1/2. Relative to the result it is 2^-16 down to x = -4, 2^-10 down to
// x = -6, and a few ULP for smaller x. Few vectors of a normalised tensor contain x below -6.
template <typename L>
Real<L> normal_cdf(const Real<L>& x) {
  if (x.is_double()) return cdf_with_tails(x);
  const Real<L> root = root_of_tail(at_most(abs(x), kRootEnd));
  const Real<L> half = root * 0.5;
  const Real<L> near = select(x > 0, fma(-half, root, 1), half * root);
  return with_rare(x < -kRootEnd, near, [&] { return cdf_with_tails(x); });
}

// x normal_cdf(x), in float as max(x, 0) - |x| normal_cdf(-|x|): a smaller error by fewer operations. The relative errors in
// the left tail are those of normal_cdf.
template <typename L>
Real<L> gelu(const Real<L>& x) {
  if (x.is_double()) return x * cdf_with_tails(x);
  const Real<L> a = at_most(abs(x), kRootEnd);
  const Real<L> root = root_of_tail(a);
  const Real<L> near = fma(-(a * 0.5 * root), root, at_least(x, 0));
  return with_rare(x < -kRootEnd, near, [&] { return x * cdf_with_tails(x); });
}

}  // namespace lamina::kernel::math
