// Logarithms and powers. Notation as in lanes.h: x = 2^k (1 + f).
#include <array>
#include <cmath>

#include "backends/cpu/vector/lanes.h"
#include "backends/cpu/vector/math.h"
#include "kernels/polynomials.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

// k ln 2 + log(1 + f)
Value* log_of_reduced(const FloatLanes& l, Value* k, Value* f) {
  Value* tail =
      l.is_double() ? l.horner(kernel::kDoublePolynomials.log_tail, f) : l.horner(kernel::kFloatPolynomials.log_tail, f);
  Value* log_mantissa = l.fma(l.mul(f, f), tail, f);
  Value* low = l.fma(k, l.constant(l.pick(kLn2LowFloat, kLn2LowDouble)), log_mantissa);
  return l.fma(k, l.constant(l.pick(kLn2HighFloat, kLn2HighDouble)), low);
}

// `result` for 0 < x < infinity. Elsewhere the result depends only on x.
Value* with_log_edges(const FloatLanes& l, Value* x, Value* result) {
  // infinity and (quieted) NaN are returned
  result = l.select(l.builder().CreateFCmpOLT(x, l.infinity()), result, l.add(x, x));
  result = l.select(l.less(x, 0), l.nan(), result);
  return l.select(l.equal(x, 0), l.constant(-HUGE_VAL), result);
}

// A value as an unevaluated sum: hi + lo with |lo| at most half an ULP of hi.
struct Pair {
  Value* hi;
  Value* lo;
};

// Exact if |x| >= |y| or x is 0.
Pair fast_sum(const FloatLanes& l, Value* x, Value* y) {
  Value* sum = l.add(x, y);
  return {sum, l.sub(y, l.sub(sum, x))};
}

Pair product(const FloatLanes& l, Value* x, Value* y) {
  Value* hi = l.mul(x, y);
  return {hi, l.fma(x, y, l.neg(hi))};
}

Pair product(const FloatLanes& l, Pair x, Pair y) {
  Pair p = product(l, x.hi, y.hi);
  Value* cross = l.fma(x.hi, y.lo, l.mul(x.lo, y.hi));
  return fast_sum(l, p.hi, l.add(p.lo, cross));
}

// log(1 + f) = 2 artanh(s), s = f / (2 + f). Terms up to s^3 are computed as pairs, which leaves a relative error below
// 2^-62.
Pair log1p_pair(const FloatLanes& l, Value* f) {
  const Pair bottom = fast_sum(l, l.constant(2), f);
  Value* s_hi = l.div(f, bottom.hi);
  Value* rest = l.fma(l.neg(s_hi), bottom.lo, l.fma(l.neg(s_hi), bottom.hi, f));
  const Pair s = fast_sum(l, s_hi, l.div(rest, bottom.hi));
  const Pair square = product(l, s, s);

  std::array<double, 11> series{};  // artanh(s) 2 / s from s^4 on, divided by s^4; 0.03^12 is below 2^-60
  for (size_t i = 0; i < series.size(); ++i) series[i] = 2.0 / static_cast<double>(2 * i + 5);
  constexpr double kTwoThirds = 2.0 / 3.0, kTwoThirdsRest = 0x1.5555555555555p-55;
  Pair third = fast_sum(l, l.constant(kTwoThirds), l.mul(square.hi, l.horner(series, square.hi)));
  third.lo = l.add(third.lo, kTwoThirdsRest);
  const Pair cubic = product(l, product(l, s, square), third);
  const Pair sum = fast_sum(l, l.mul(s.hi, 2.0), cubic.hi);
  return fast_sum(l, sum.hi, l.add(sum.lo, l.fma(s.lo, l.constant(2), cubic.lo)));
}

Pair log_pair(const FloatLanes& l, Value* x) {
  const LogReduction e = reduce_log(l, x, true);
  const Pair mantissa = log1p_pair(l, e.f);
  // If k is 0 the first sum must not round: fast_sum then has x == 0 and is exact.
  const Pair high = fast_sum(l, l.mul(e.k, kLn2HighDouble), mantissa.hi);
  const Pair low = product(l, e.k, l.constant(kLn2LowDouble));
  Value* last = l.fma(e.k, l.constant(kLn2LastDouble), l.add(low.lo, mantissa.lo));
  const Pair middle = fast_sum(l, high.hi, low.hi);
  return fast_sum(l, middle.hi, l.add(l.add(middle.lo, high.lo), last));
}

// x^beta for 0 < x < infinity, in double.
Value* pow_of_positive(const FloatLanes& l, Value* x, double beta, bool to_last_bit, const Instructions& target) {
  auto& b = l.builder();
  if (!to_last_bit) return emit_exp(b, l.mul(emit_log(b, x), beta), target);
  const Pair log = log_pair(l, x);
  Value* y = l.mul(log.hi, beta);
  Value* low = l.fma(log.hi, l.constant(beta), l.neg(y));
  low = l.fma(log.lo, l.constant(beta), low);
  // for large |y| the result is 0 or infinity, and `low` may be NaN
  low = l.select(l.less(l.abs(y), 1000), low, l.constant(0));
  const ExpReduction e = reduce_exp(l, l.at_most(l.at_least(y, -746), 710), low, 2 * l.bias());
  return scale_by_power(l, exp_polynomial(l, e.r), e, target);
}

// In double, for `x` of double. `to_last_bit` is set if the result is not rounded to float afterwards.
Value* pow_general(const FloatLanes& l, Value* x, double beta, bool to_last_bit, const Instructions& target) {
  auto& b = l.builder();
  const bool integer = std::isinf(beta) || std::trunc(beta) == beta;
  const bool odd = integer && !std::isinf(beta) && std::fmod(beta, 2.0) != 0;
  Value* magnitude = l.abs(x);
  Value* result = nullptr;
  if (std::isinf(beta)) {
    const bool grows = beta > 0;
    result = l.select(l.less(magnitude, 1), l.constant(grows ? 0 : HUGE_VAL), l.constant(grows ? HUGE_VAL : 0));
    result = l.select(l.equal(magnitude, 1), l.constant(1), result);
  } else {
    result = pow_of_positive(l, magnitude, beta, to_last_bit, target);
  }
  result = l.select(l.equal(magnitude, 0), l.constant(beta > 0 ? 0 : HUGE_VAL), result);
  result = l.select(l.equal(magnitude, HUGE_VAL), l.constant(beta > 0 ? HUGE_VAL : 0), result);
  if (odd) result = l.copysign(result, x);
  if (!integer) result = l.select(b.CreateAnd(l.less(x, 0), l.greater(x, -HUGE_VAL)), l.nan(), result);
  return l.select(l.is_nan(x), l.add(x, x), result);
}

// sqrt with pow's special cases: pow(-0, 0.5) is +0, and pow(-infinity, 0.5) is +infinity.
Value* pow_half(const FloatLanes& l, Value* x) { return l.select(l.equal(x, -HUGE_VAL), l.infinity(), l.sqrt(l.add(x, 0.0))); }

}  // namespace

Value* emit_log(Builder& b, Value* x) {
  const FloatLanes l(b, x->getType());
  const LogReduction e = reduce_log(l, x, true);
  return with_log_edges(l, x, log_of_reduced(l, e.k, e.f));
}

// 1 + x = u + c exactly. The log of u's mantissa, with c scaled by the same power of two and added to f. If u needs no
// scaling, f + c is x.
Value* emit_log1p(Builder& b, Value* x) {
  const FloatLanes l(b, x->getType());
  Value* u = l.add(x, 1.0);
  Value* part = l.sub(u, 1.0);
  Value* c = l.add(l.sub(l.constant(1), l.sub(u, part)), l.sub(x, part));
  const LogReduction e = reduce_log(l, u, false);
  // 2^-k. From k = 60 on c is negligible, and 2^-k would become subnormal for larger k.
  Value* k = b.CreateSelect(b.CreateICmpSGT(e.k_int, l.int_constant(60)), l.int_constant(60), e.k_int);
  Value* field = b.CreateShl(k, l.int_constant(static_cast<uint64_t>(l.mantissa_bits())));
  Value* unscale = l.from_bits(b.CreateSub(l.int_constant(l.bits_of(1)), field));
  Value* result = with_log_edges(l, u, log_of_reduced(l, e.k, l.fma(c, unscale, e.f)));
  return l.select(l.less(l.abs(x), std::ldexp(1.0, -2 - l.mantissa_bits())), x, result);
}

Value* emit_pow_const(Builder& b, Value* x, double beta, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  if (std::isnan(beta)) return l.select(l.equal(x, 1), l.constant(1), l.nan());
  if (beta == 0) return l.constant(1);
  if (beta == 1) return x;
  if (beta == 2) return l.mul(x, x);
  if (beta == 3) return l.mul(l.mul(x, x), x);
  if (beta == -1) return l.div(l.constant(1), x);
  if (beta == 0.5) return pow_half(l, x);
  if (beta == -0.5) return l.div(l.constant(1), pow_half(l, x));
  if (l.is_double()) return pow_general(l, x, beta, true, target);
  const FloatLanes wide(b, l.type()->getWithNewType(b.getDoubleTy()));
  return b.CreateFPTrunc(pow_general(wide, b.CreateFPExt(x, wide.type()), beta, false, target), l.type());
}

}  // namespace lamina::cpu
