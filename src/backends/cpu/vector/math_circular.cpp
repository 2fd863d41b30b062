// Sine and cosine, always computed in double, with the same operations as kernels/dialect/trigonometry.inl.
#include "backends/cpu/vector/lanes.h"
#include "backends/cpu/vector/math.h"
#include "kernels/dialect/trigonometry.h"

namespace lamina::cpu {
namespace {

using llvm::Value;
using Builder = llvm::IRBuilder<>;

constexpr double kShifter = 0x1.8p52;

// hi + lo, unevaluated.
struct Pair {
  Value* hi;
  Value* lo;
};

// An angle as a number of quarter turns and a remainder, with |hi + lo| at most slightly more than pi / 4.
struct Angle {
  Value* hi;
  Value* lo;
  Value* quarters;  // in the two lowest bits
};

Pair exact_sum(const FloatLanes& l, Value* a, Value* b) {
  Value* sum = l.add(a, b);
  Value* b_part = l.sub(sum, a);
  return {sum, l.add(l.sub(a, l.sub(sum, b_part)), l.sub(b, b_part))};
}

Pair fast_sum(const FloatLanes& l, Value* a, Value* b) {
  Value* sum = l.add(a, b);
  return {sum, l.sub(b, l.sub(sum, a))};
}

Pair product(const FloatLanes& l, Value* a, double b) {
  Value* hi = l.mul(a, b);
  return {hi, l.fma(a, l.constant(b), l.neg(hi))};
}

Angle near_angle(const FloatLanes& l, Value* x) {
  Value* shifted = l.fma(x, l.constant(kernel::kInverseHalfPi), l.constant(kShifter));
  Value* n = l.sub(shifted, kShifter);
  const Pair second = product(l, n, kernel::kHalfPiLow);
  const Pair sum = exact_sum(l, l.fma(l.neg(n), l.constant(kernel::kHalfPiHigh), x), l.neg(second.hi));
  Value* rest = l.sub(sum.lo, l.fma(n, l.constant(kernel::kHalfPiLast), second.lo));
  const Pair left = fast_sum(l, sum.hi, rest);
  return {left.hi, left.lo, l.bits(shifted)};
}

// Numbers as sums of three parts. The first is always close to 0.
struct Total {
  Value* high;
  Value* middle;
  Value* low;
};

void add(const FloatLanes& l, Total& total, Value* turns, const Instructions& target) {
  Value* circles = emit_round_half_even(l.builder(), l.mul(turns, 0.25), target);
  const Pair a = exact_sum(l, total.high, l.fma(circles, l.constant(-4), turns));
  const Pair b = exact_sum(l, total.middle, a.lo);
  total = {a.hi, b.hi, l.add(total.low, b.lo)};
}

double group_of(int i, double scale) { return kernel::kTwoOverPi[i] * scale; }

Angle far_angle(const FloatLanes& l, Value* x, bool single, const Instructions& target) {
  const int groups = single ? kernel::kGroupsOfFloat : kernel::kGroupsOfDouble;
  Value* very_far = l.builder().CreateFCmpOGE(x, l.constant(kernel::kVeryFar));
  Value* scaled = single ? x : l.select(very_far, l.mul(x, kernel::kScaleOfVeryFar), x);
  Value* upper = single ? x : l.from_bits(l.builder().CreateAnd(l.bits(scaled), l.int_constant(~((uint64_t{1} << 27) - 1))));
  Value* lower = single ? nullptr : l.sub(scaled, upper);
  Total total{l.constant(0), l.constant(0), l.constant(0)};
  double near_scale = 0x1p-24, far_scale = 0x1p168;
  for (int i = 0; i < groups; ++i, near_scale *= 0x1p-24, far_scale *= 0x1p-24) {
    Value* group = l.constant(group_of(i, near_scale));
    if (!single) group = l.select(very_far, l.constant(group_of(kernel::kFirstOfVeryFar + i, far_scale)), group);
    add(l, total, l.mul(upper, group), target);
    if (!single) add(l, total, l.mul(lower, group), target);
  }
  Value* shifted = l.add(total.high, kShifter);
  const Pair a = exact_sum(l, l.sub(total.high, l.sub(shifted, kShifter)), total.middle);
  const Pair quarter = exact_sum(l, a.hi, l.add(a.lo, total.low));
  const Pair angle = product(l, quarter.hi, kernel::kHalfPiHigh);
  Value* rest = l.fma(quarter.hi, l.constant(kernel::kHalfPiLow), l.mul(quarter.lo, kernel::kHalfPiHigh));
  const Pair left = fast_sum(l, angle.hi, l.add(angle.lo, rest));
  return {left.hi, left.lo, l.bits(shifted)};
}

Value* sin_of(const FloatLanes& l, const Angle& angle, bool single) {
  Value* square = l.mul(angle.hi, angle.hi);
  Value* cube = l.mul(square, angle.hi);
  const auto& c = kernel::kTrigonometry;
  if (single) return l.fma(cube, l.horner(c.short_sin_tail, square), angle.hi);
  Value* of_low = l.fma(l.mul(square, -0.5), angle.lo, angle.lo);
  return l.add(angle.hi, l.fma(cube, l.horner(c.sin_tail, square), of_low));
}

Value* cos_of(const FloatLanes& l, const Angle& angle, bool single) {
  Value* square = l.mul(angle.hi, angle.hi);
  Value* half_square = l.mul(square, 0.5);
  Value* most = l.sub(l.constant(1), half_square);
  Value* lost = l.sub(l.sub(l.constant(1), most), half_square);
  Value* fourth = l.mul(square, square);
  const auto& c = kernel::kTrigonometry;
  if (single) return l.add(most, l.fma(fourth, l.horner(c.short_cos_tail, square), lost));
  Value* of_low = l.neg(l.mul(angle.hi, angle.lo));
  return l.add(most, l.add(lost, l.fma(fourth, l.horner(c.cos_tail, square), of_low)));
}

// The value at an angle `ahead` quarter turns after the sine's. The sine has the sign of x.
Value* at_angle(const FloatLanes& l, Value* x, const Angle& angle, int ahead, bool single) {
  Builder& b = l.builder();
  Value* quarters = b.CreateAdd(angle.quarters, l.int_constant(static_cast<uint64_t>(ahead)));
  Value* is_cosine = b.CreateICmpNE(b.CreateAnd(quarters, l.int_constant(1)), l.int_constant(0));
  Value* value = l.select(is_cosine, cos_of(l, angle, single), sin_of(l, angle, single));
  Value* const sign_bit = l.int_constant(uint64_t{1} << 63);
  Value* sign = b.CreateAnd(b.CreateShl(quarters, l.int_constant(62)), sign_bit);
  if (ahead == 0) sign = b.CreateXor(sign, b.CreateAnd(l.bits(x), sign_bit));
  return l.from_bits(b.CreateXor(l.bits(value), sign));
}

Value* circular(const FloatLanes& l, Value* x, int ahead, bool single, const Instructions& target) {
  Value* a = l.abs(x);
  Value* usual = at_angle(l, x, near_angle(l, a), ahead, single);
  // Infinities and NaN use this path too, and their results are replaced.
  Value* is_far = l.builder().CreateFCmpUGT(a, l.constant(kernel::kNearCircles));
  return l.with_rare(
      is_far, usual,
      [&] {
        Value* far = at_angle(l, x, far_angle(l, a, single, target), ahead, single);
        far = l.select(l.equal(a, HUGE_VAL), l.nan(), far);
        return l.select(l.is_nan(x), l.add(x, x), far);
      },
      target);
}

Value* emit_circular(Builder& b, Value* x, int ahead, const Instructions& target) {
  const FloatLanes l(b, x->getType());
  if (l.is_double()) return circular(l, x, ahead, false, target);
  const FloatLanes wide(b, l.type()->getWithNewType(b.getDoubleTy()));
  return b.CreateFPTrunc(circular(wide, b.CreateFPExt(x, wide.type()), ahead, true, target), l.type());
}

}  // namespace

Value* emit_sin(Builder& b, Value* x, const Instructions& target) { return emit_circular(b, x, 0, target); }
Value* emit_cos(Builder& b, Value* x, const Instructions& target) { return emit_circular(b, x, 1, target); }

}  // namespace lamina::cpu
