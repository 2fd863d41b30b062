// The remainder of a division cut off at the point, exact for quotients of any size.
#pragma once

#include <array>
#include <cmath>

#include "kernels/math/lanes.h"
#include "kernels/math/rounding.h"

namespace lamina::kernel::math {

// a - b * (a / b without the fraction) for a, b >= 0 and a / b < 2^(mantissa_bits + 1). Rounding may make the quotient one too
// large. Both differences are multiples of the last place of b and not larger than b, so they are exact.
template <typename L>
Real<L> short_remainder(const Real<L>& a, const Real<L>& b) {
  const Real<L> rest = fma(-trunc(a / b), b, a);
  return select(a < b, a, select(rest < 0, rest + b, rest));
}

// For any a and b > 0: the remainder by b 2^(n k), then by b 2^(n (k - 1)), and so on to b, each with a quotient below 2^n.
template <typename L>
Real<L> long_remainder(const Real<L>& a, const Real<L>& b) {
  const int digits = a.mantissa_bits();
  // The exponents of a and b differ by at most those of the largest and the smallest number.
  const int steps = (2 * a.bias() + digits + digits - 1) / digits + 1;
  const double up = std::ldexp(1.0, digits), down = std::ldexp(1.0, -digits);
  const auto [largest] = repeat(steps, std::array<Real<L>, 1>{b}, [&](const auto&, const std::array<Real<L>, 1>& factor) {
    const Real<L> next = factor[0] * up;
    return std::array<Real<L>, 1>{select(next <= a, next, factor[0])};
  });
  const auto [rest, last] =
      repeat(steps, std::array<Real<L>, 2>{a, largest}, [&](const auto&, const std::array<Real<L>, 2>& at) {
        const Real<L> next = at[1] * down;
        return std::array<Real<L>, 2>{short_remainder(at[0], at[1]), select(next < b, b, next)};
      });
  return short_remainder(rest, b);
}

// C's fmod: the remainder has the sign of x.
template <typename L>
Real<L> fmod(const Real<L>& x, const Real<L>& y) {
  const Real<L> a = abs(x), b = abs(y);
  const Real<L> usual = short_remainder(a, b);
  const double most = std::ldexp(1.0, x.mantissa_bits());
  const Real<L> rest = with_rare(a / b >= most, usual, [&] {
    // x / 0 and infinity / y use this path too, and have no remainder.
    const Real<L> has_none = (a - a) / b;
    return select(is_nan(has_none), NAN, long_remainder(a, b));
  });
  return copysign(rest, x);
}

}  // namespace lamina::kernel::math
