// Rounding to integers and the sign, in the format of the operand. Rounding keeps the sign of zero; NaN becomes quiet.
#pragma once

#include "kernels/math/lanes.h"

namespace lamina::kernel::math {

// To the nearest integer, ties to even. Every value from 2^mantissa_bits on is an integer. For smaller ones, adding that number
// rounds to an integer. NaN selects the sum, which makes it quiet.
template <typename L>
Real<L> round_half_even(const Real<L>& x) {
  if (const auto rounded = x.lanes->rounded(x.value, Rounding::half_even)) return {x.lanes, *rounded};
  const double shifter = std::ldexp(1.0, x.mantissa_bits());
  const Real<L> magnitude = abs(x);
  return select(magnitude >= shifter, x, copysign((magnitude + shifter) - shifter, x));
}

template <typename L>
Real<L> floor(const Real<L>& x) {
  if (const auto rounded = x.lanes->rounded(x.value, Rounding::down)) return {x.lanes, *rounded};
  const Real<L> nearest = round_half_even(x);
  return select(nearest > x, nearest - 1, nearest);
}

template <typename L>
Real<L> trunc(const Real<L>& x) {
  if (const auto rounded = x.lanes->rounded(x.value, Rounding::toward_zero)) return {x.lanes, *rounded};
  return copysign(floor(abs(x)), x);
}

// 1 for positive, -1 for negative numbers, else 0, also for NaN, as in PyTorch.
template <typename L>
Real<L> sign(const Real<L>& x) {
  return select(x > 0, 1.0, select(x < 0, -1.0, x.like(0)));
}

}  // namespace lamina::kernel::math
