// Unevaluated sums of two numbers, for results that need more than the format's precision.
#pragma once

#include "kernels/math/lanes.h"

namespace lamina::kernel::math {

// hi + lo with |lo| at most half an ULP of hi.
template <typename L>
struct Pair {
  Real<L> hi, lo;
};

// Exact for finite operands.
template <typename L>
Pair<L> exact_sum(const Real<L>& a, const Real<L>& b) {
  const Real<L> sum = a + b;
  const Real<L> b_part = sum - a;
  return {sum, (a - (sum - b_part)) + (b - b_part)};
}

// Exact if |a| >= |b| or a is 0.
template <typename L>
Pair<L> fast_sum(const Real<L>& a, const Real<L>& b) {
  const Real<L> sum = a + b;
  return {sum, b - (sum - a)};
}

template <typename L>
Pair<L> product(const Real<L>& a, const Real<L>& b) {
  const Real<L> hi = a * b;
  return {hi, fma(a, b, -hi)};
}
template <typename L>
Pair<L> product(const Real<L>& a, double b) {
  return product(a, a.like(b));
}
template <typename L>
Pair<L> product(const Pair<L>& a, const Pair<L>& b) {
  const Pair<L> p = product(a.hi, b.hi);
  const Real<L> cross = fma(a.hi, b.lo, a.lo * b.hi);
  return fast_sum(p.hi, p.lo + cross);
}

}  // namespace lamina::kernel::math
