// Logarithms and powers. Notation: x = 2^k (1 + f).
#pragma once

#include "kernels/math/exponential.h"
#include "kernels/math/lanes.h"
#include "kernels/math/pair.h"
#include "kernels/math/polynomials.h"

namespace lamina::kernel::math {

// With 1 + f in [sqrt(1/2), sqrt(2)), exactly, for positive finite x.
template <typename L>
struct LogReduction {
  Real<L> f;
  Real<L> k;      // an integer
  Bits<L> k_int;  // as an integer, without the shift for subnormals
};

template <typename L>
LogReduction<L> reduce_log_of_normal(const Real<L>& x) {
  const int mantissa = x.mantissa_bits();
  const Bits<L> whole = bits(x);
  const Bits<L> k = signed_shift_right(whole - x.bits_of(std::sqrt(0.5)), mantissa);
  const Real<L> f = from_bits(whole - (k << mantissa)) - 1.0;
  if (!x.is_double()) return {f, to_real(k), k};
  // Converting i64 to double is slow on many machines; an exponent fits the low bits of 1.5 2^52.
  constexpr double kShifter = 0x1.8p52;
  return {f, from_bits(k + x.bits_of(kShifter)) - kShifter, k};
}

template <typename L>
LogReduction<L> reduce_log(const Real<L>& x) {
  const int lift = x.mantissa_bits() + 1;
  const Mask<L> tiny = x < std::ldexp(1.0, 1 - x.bias());
  LogReduction<L> e = reduce_log_of_normal(select(tiny, x * std::ldexp(1.0, lift), x));
  e.k = select(tiny, e.k - lift, e.k);
  return e;
}

// k ln 2 + log(1 + f)
template <typename L>
Real<L> log_of_reduced(const Real<L>& k, const Real<L>& f) {
  const Real<L> log_mantissa = fma(f * f, horner(kFloatPolynomials.log_tail, kDoublePolynomials.log_tail, f), f);
  return fma(k, k.pick(kLn2HighFloat, kLn2HighDouble), fma(k, k.pick(kLn2LowFloat, kLn2LowDouble), log_mantissa));
}

// `result` for 0 < x < infinity. Elsewhere the result depends only on x: infinity and (quieted) NaN are returned.
template <typename L>
Real<L> with_log_edges(const Real<L>& x, const Real<L>& result) {
  const Real<L> known = select(x < HUGE_VAL, result, x + x);
  return select(x == 0, -HUGE_VAL, select(x < 0, NAN, known));
}

template <typename L>
Real<L> log(const Real<L>& x) {
  const LogReduction<L> e = reduce_log(x);
  return with_log_edges(x, log_of_reduced(e.k, e.f));
}

// 1 + x = u + c exactly. The log of u's mantissa, with c scaled by the same power of two and added to f. If u needs no
// scaling, f + c is x.
template <typename L>
Real<L> log1p(const Real<L>& x) {
  const Real<L> u = x + 1.0;
  const Real<L> part = u - 1.0;
  const Real<L> c = (1 - (u - part)) + (x - part);
  const LogReduction<L> e = reduce_log_of_normal(u);
  // 2^-k. From k = 60 on c is negligible, and 2^-k would become subnormal for larger k.
  const Bits<L> k = select(signed_greater(e.k_int, 60), e.k_int.like(60), e.k_int);
  const Real<L> unscale = from_bits(x.bits_of(1) - (k << x.mantissa_bits()));
  const Real<L> result = with_log_edges(u, log_of_reduced(e.k, fma(c, unscale, e.f)));
  return select(abs(x) < std::ldexp(1.0, -2 - x.mantissa_bits()), x, result);
}

// artanh(s) 2 / s from s^4 on, divided by s^4, as a polynomial in s^2; 0.03^12 is below 2^-60.
inline constexpr double kArtanhSeries[11] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                                             2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25};

// log(1 + f) = 2 artanh(s), s = f / (2 + f), in double. Terms up to s^3 are computed as pairs, which leaves a relative error
// below 2^-62.
template <typename L>
Pair<L> log1p_pair(const Real<L>& f) {
  const Pair<L> bottom = fast_sum(f.like(2), f);
  const Real<L> s_hi = f / bottom.hi;
  const Real<L> rest = fma(-s_hi, bottom.lo, fma(-s_hi, bottom.hi, f));
  const Pair<L> s = fast_sum(s_hi, rest / bottom.hi);
  const Pair<L> square = product(s, s);

  constexpr double kTwoThirds = 2.0 / 3.0, kTwoThirdsRest = 0x1.5555555555555p-55;
  Pair<L> third = fast_sum(f.like(kTwoThirds), square.hi * horner(kArtanhSeries, square.hi));
  third.lo = third.lo + kTwoThirdsRest;
  const Pair<L> cubic = product(product(s, square), third);
  const Pair<L> sum = fast_sum(s.hi * 2.0, cubic.hi);
  return fast_sum(sum.hi, sum.lo + fma(s.lo, 2.0, cubic.lo));
}

template <typename L>
Pair<L> log_pair(const Real<L>& x) {
  const LogReduction<L> e = reduce_log(x);
  const Pair<L> mantissa = log1p_pair(e.f);
  // If k is 0 the first sum must not round: fast_sum then has x == 0 and is exact.
  const Pair<L> high = fast_sum(e.k * kLn2HighDouble, mantissa.hi);
  const Pair<L> low = product(e.k, kLn2LowDouble);
  const Real<L> last = fma(e.k, kLn2LastDouble, low.lo + mantissa.lo);
  const Pair<L> middle = fast_sum(high.hi, low.hi);
  return fast_sum(middle.hi, middle.lo + high.lo + last);
}

// x^beta for 0 < x < infinity, in double. `single`: the result is rounded to float.
template <typename L>
Real<L> power_of_positive(const Real<L>& x, double beta, bool single) {
  if (single) return exp(log(x) * beta);
  const Pair<L> logarithm = log_pair(x);
  const Real<L> y = logarithm.hi * beta;
  const Real<L> exact_low = fma(logarithm.lo, beta, fma(logarithm.hi, beta, -y));
  // For large |y| the result is 0 or infinity, and the correction may be NaN.
  const Real<L> low = select(abs(y) < 1000, exact_low, 0.0);
  // A power may be subnormal, unlike exp; below the bound it is 0.
  const ExpReduction<L> e = reduce_exp_of_pair(at_most(at_least(y, -746), exp_high(y)), low, 2 * y.bias());
  return scale_by_power(exp_polynomial(e.r), e);
}

// In double.
template <typename L>
Real<L> general_power(const Real<L>& x, double beta, bool single) {
  const bool integer = std::isinf(beta) || std::trunc(beta) == beta;
  const bool odd = integer && !std::isinf(beta) && std::fmod(beta, 2.0) != 0;
  const double at_zero = beta > 0 ? 0 : HUGE_VAL, at_infinity = beta > 0 ? HUGE_VAL : 0;
  const Real<L> magnitude = abs(x);
  Real<L> result = x;
  if (std::isinf(beta)) {
    result = select(magnitude == 1, 1.0, select(magnitude < 1, at_zero, x.like(at_infinity)));
  } else {
    result = power_of_positive(magnitude, beta, single);
  }
  result = select(magnitude == 0, at_zero, result);
  result = select(magnitude == HUGE_VAL, at_infinity, result);
  if (odd) result = copysign(result, x);
  if (!integer) result = select((x < 0) & (x > -HUGE_VAL), NAN, result);
  return select(is_nan(x), x + x, result);
}

// sqrt with pow's special cases: pow(-0, 0.5) is +0, and pow(-infinity, 0.5) is +infinity.
template <typename L>
Real<L> root(const Real<L>& x) {
  return select(x == -HUGE_VAL, HUGE_VAL, sqrt(x + 0.0));
}

// x^beta for a real constant, as C's pow: beta 0 returns 1 for every x, including NaN. A negative x needs an integer beta,
// else the result is NaN.
template <typename L>
Real<L> power(const Real<L>& x, double beta) {
  if (std::isnan(beta)) return select(x == 1, 1.0, x.like(NAN));
  if (beta == 0) return x.like(1);
  if (beta == 1) return x;
  if (beta == 2) return x * x;
  if (beta == 3) return x * x * x;
  if (beta == -1) return 1 / x;
  if (beta == 0.5) return root(x);
  if (beta == -0.5) return 1 / root(x);
  return in_double(x, [&](const auto& wide, bool single) { return general_power(wide, beta, single); });
}

}  // namespace lamina::kernel::math
