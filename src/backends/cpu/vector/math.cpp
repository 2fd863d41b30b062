// The exponential family. Notation as in lanes.h: y = k ln 2 + r, z = exp(r) - 1, s = 2^k, so exp(y) = s + s z. Sums like s +
// s z - 1 are written fma(s, z, s - 1). s - 1 is exact in the relevant range, so there is one rounding.
#include "backends/cpu/vector/math.h"

#include <numbers>

#include "backends/cpu/vector/lanes.h"
#include "kernels/polynomials.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

// Arguments beyond these give 0 and infinity.
double exp_low(const FloatLanes& l) { return l.pick(-104, -746); }
double exp_high(const FloatLanes& l) { return l.pick(89, 710); }

// exp(-a^2 / 2), with the square in two parts: otherwise the relative error of a^2 would be multiplied by a^2 / 2.
ExpReduction reduce_gauss(const FloatLanes& l, Value* a, int64_t offset) {
  Value* square = l.mul(a, a);
  Value* rest = l.fma(a, a, l.neg(square));
  return reduce_exp(l, l.mul(square, -0.5), l.mul(rest, -0.5), offset);
}

// normal_cdf(-a) = 2^k times the result, for 0 <= a <= gauss_end.
Value* gauss_tail(const FloatLanes& l, Value* a, const ExpReduction& e) {
  const auto& single = kernel::kFloatPolynomials;
  const auto& twice = kernel::kDoublePolynomials;
  Value* top = l.is_double() ? l.horner(twice.mills_top, a) : l.horner(single.mills_top, a);
  Value* rest = l.is_double() ? l.horner(twice.mills_rest, a) : l.horner(single.mills_rest, a);
  constexpr double kSqrtTwoPi = 0x1.40d931ff62706p+1;
  Value* bottom = l.fma(a, l.fma(top, l.constant(kSqrtTwoPi), rest), l.constant(1.5));
  Value* mills = l.div(top, bottom);
  return l.fma(expm1_polynomial(l, e.r), mills, mills);
}

double gauss_end(const FloatLanes& l) { return l.pick(14.5, 38.7); }

// Keeps a small relative error in the left tail, down to the smallest number of the format.
Value* cdf_with_tails(const FloatLanes& l, Value* x, const Instructions& target) {
  Value* a = l.at_most(l.abs(x), gauss_end(l));
  const ExpReduction e = reduce_gauss(l, a, 2 * l.bias());
  Value* left = scale_by_power(l, gauss_tail(l, a, e), e, target);
  return l.select(l.greater(x, 0), l.sub(l.constant(1), left), left);
}

}  // namespace

Value* emit_exp(Builder& b, Value* x, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  return emit_exp_of_at_most_zero(b, l.at_most(x, exp_high(l)), target);
}

Value* emit_exp_of_at_most_zero(Builder& b, Value* x, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  const ExpReduction e = reduce_exp(l, l.at_least(x, exp_low(l)), nullptr, 2 * l.bias());
  return scale_by_power(l, exp_polynomial(l, e.r), e, target);
}

Value* emit_expm1(Builder& b, Value* x, const Instructions&) {
  const FloatLanes l(b, x->getType());
  // Uses half of s, so that 2^k stays finite. Below the lower bound, -1 is the nearest value.
  const ExpReduction e = reduce_exp(l, l.at_most(l.at_least(x, l.pick(-18, -38)), exp_high(l)), nullptr, l.bias() - 1);
  Value* half_s = power(l, e);
  Value* result = l.mul(l.fma(half_s, expm1_polynomial(l, e.r), l.sub(half_s, 0.5)), 2.0);
  // Halving would lose bits of subnormals, and a sum is never -0. For such x, expm1(x) = x (1 + x / 2) rounds to x.
  return l.select(l.less(l.abs(x), std::ldexp(1.0, -2 - l.mantissa_bits())), x, result);
}

// tanh(a) = (1 - exp(-2a)) / (1 + exp(-2a)). Beyond the bound, 1 is the nearest value.
Value* emit_tanh(Builder& b, Value* x, const Instructions&) {
  const FloatLanes l(b, x->getType());
  Value* y = l.mul(l.at_most(l.abs(x), l.pick(10, 22)), -2.0);
  const ExpReduction e = reduce_exp(l, y, nullptr, l.bias());
  Value* s = power(l, e);
  Value* z = expm1_polynomial(l, e.r);
  return l.copysign(l.div(l.fma(s, z, l.sub(s, 1)), l.fma(s, z, l.add(s, 1))), x);
}

// c / (c + c exp(-x)) with c = 1, or with a small power of two if exp(-x) would overflow.
Value* emit_sigmoid(Builder& b, Value* x, const Instructions&) {
  const FloatLanes l(b, x->getType());
  // For large x, 1 is the nearest value. k is limited to the range in which 1 + s is exact; the error of r there is
  // negligible against 1.
  Value* y = l.at_most(l.at_least(l.neg(x), l.pick(-17.5, -37.5)), -exp_low(l));
  const ExpReduction e = reduce_exp(l, y, nullptr, l.bias(), -l.mantissa_bits());
  Value* c = l.select(l.less(x, l.pick(-80, -700)), l.constant(l.pick(0x1p-64, 0x1p-512)), l.constant(1));
  Value* c_field = b.CreateSub(l.bits(c), l.int_constant(l.bits_of(1)));
  Value* cs = l.from_bits(b.CreateAdd(power_field(l, e), c_field));
  Value* sum = l.add(cs, c);
  Value* rest = l.sub(c, l.sub(sum, cs));  // for large s
  return l.div(c, l.add(sum, l.fma(cs, expm1_polynomial(l, e.r), rest)));
}

Value* emit_erf(Builder& b, Value* x, const Instructions&) {
  const FloatLanes l(b, x->getType());
  Value* square = l.mul(x, x);
  Value* tail = l.is_double() ? l.horner(kernel::kDoublePolynomials.erf_tail, square)
                              : l.horner(kernel::kFloatPolynomials.erf_tail, square);
  Value* near_zero = l.fma(x, tail, x);
  // 1 - 2 normal_cdf(-sqrt(2) |x|). Beyond the bound, 1 is the nearest value. The exponent's offset contains the factor 2.
  Value* a = l.at_most(l.mul(l.abs(x), std::numbers::sqrt2), l.pick(6, 9));
  const ExpReduction e = reduce_gauss(l, a, l.bias() + 1);
  Value* far = l.fma(l.neg(power(l, e)), gauss_tail(l, a, e), l.constant(1));
  return l.select(l.less(l.abs(x), 1.0), near_zero, l.copysign(far, x));
}

Value* emit_normal_cdf(Builder& b, Value* x, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  if (l.is_double()) return cdf_with_tails(l, x, target);
  // The fourth root of the left tail is a polynomial, without a division or an exponential. Few vectors of a normalised
  // tensor contain smaller x than its range.
  constexpr double kRootEnd = 5.5;
  Value* a = l.at_most(l.abs(x), kRootEnd);
  const std::span<const double> c = kernel::kFloatPolynomials.cdf_root;
  Value* root = l.fma(a, l.estrin(c.subspan(1), a), l.constant(c[0]));
  Value* square = l.mul(root, root);
  Value* left = l.mul(l.mul(square, 0.5), square);
  Value* near = l.select(l.greater(x, 0), l.sub(l.constant(1), left), left);
  return l.with_rare(l.less(x, -kRootEnd), near, [&] { return cdf_with_tails(l, x, target); }, target);
}

Value* emit_round_half_even(Builder& b, Value* x, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  if (target->rounds_to_integer) return b.CreateIntrinsic(llvm::Intrinsic::roundeven, {l.type()}, {x});
  // Every value from 2^mantissa_bits on is an integer. For smaller ones, adding that number rounds to an integer. NaN selects
  // the sum, which makes it quiet.
  const double shifter = std::ldexp(1.0, l.mantissa_bits());
  Value* magnitude = l.abs(x);
  Value* rounded = l.copysign(l.sub(l.add(magnitude, shifter), shifter), x);
  return l.select(b.CreateFCmpOGE(magnitude, l.constant(shifter)), x, rounded);
}

}  // namespace lamina::cpu
