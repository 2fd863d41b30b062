// Arithmetic of one floating-point type beside the functions of kernels/math, and sums of pairs. The bits are those of the CPU
// backend if fma and division are exact and nothing is flushed to zero.
//
// Included once per type, with these defined:
//   REAL, BITS          lm_f32, lm_u32 or lm_f64, lm_u64
//   LM(name)            name##_f32 or name##_f64
//   K(literal)          the literal in that type

#define SIGN_BIT ((BITS)1 << (sizeof(BITS) * 8 - 1))

LM_FN REAL LM(lm_abs)(REAL x) { return LM(lm_real)(LM(lm_bits)(x) & (SIGN_BIT - 1)); }
LM_FN REAL LM(lm_copysign)(REAL magnitude, REAL sign) {
  return LM(lm_real)((LM(lm_bits)(magnitude) & (SIGN_BIT - 1)) | (LM(lm_bits)(sign) & SIGN_BIT));
}
LM_FN REAL LM(lm_negate)(REAL x) { return LM(lm_real)(LM(lm_bits)(x) ^ SIGN_BIT); }

// A NaN operand is returned. If both operands are zeros, the second is returned.
LM_FN REAL LM(lm_maximum)(REAL a, REAL b) { return a != a ? a : a > b ? a : b; }
LM_FN REAL LM(lm_minimum)(REAL a, REAL b) { return a != a ? a : a < b ? a : b; }

// Clamps that propagate NaN.
LM_FN REAL LM(lm_at_least)(REAL x, REAL low) { return x < low ? low : x; }
LM_FN REAL LM(lm_at_most)(REAL x, REAL high) { return x > high ? high : x; }

// ---- sums

// A sum and its rounding error. The error is 0 if the sum is not finite.
typedef struct {
  REAL hi;
  REAL lo;
} LM(lm_pair);

LM_FN LM(lm_pair) LM(lm_pair_of)(REAL hi, REAL lo) {
  LM(lm_pair) p;
  p.hi = hi;
  p.lo = lo;
  return p;
}

LM_FN LM(lm_pair) LM(lm_two_sum)(REAL a, REAL b) {
  const REAL sum = a + b;
  const REAL b_part = sum - a;
  const REAL rest = (a - (sum - b_part)) + (b - b_part);
  return LM(lm_pair_of)(sum, sum - sum == K(0.0) ? rest : K(0.0));
}

LM_FN LM(lm_pair) LM(lm_pair_add)(LM(lm_pair) total, REAL value) {
  const LM(lm_pair) sum = LM(lm_two_sum)(total.hi, value);
  return LM(lm_two_sum)(sum.hi, sum.lo + total.lo);
}

LM_FN LM(lm_pair) LM(lm_pair_join)(LM(lm_pair) a, LM(lm_pair) b) {
  const LM(lm_pair) sum = LM(lm_two_sum)(a.hi, b.hi);
  return LM(lm_two_sum)(sum.hi, sum.lo + (a.lo + b.lo));
}

// Exact if |a| >= |b| or a is 0.
LM_FN LM(lm_pair) LM(lm_fast_sum)(REAL a, REAL b) {
  const REAL sum = a + b;
  return LM(lm_pair_of)(sum, b - (sum - a));
}

LM_FN LM(lm_pair) LM(lm_product)(REAL a, REAL b) {
  const REAL hi = a * b;
  return LM(lm_pair_of)(hi, LM(lm_fma)(a, b, -hi));
}

LM_FN LM(lm_pair) LM(lm_pair_product)(LM(lm_pair) a, LM(lm_pair) b) {
  const LM(lm_pair) p = LM(lm_product)(a.hi, b.hi);
  const REAL cross = LM(lm_fma)(a.hi, b.lo, a.lo * b.hi);
  return LM(lm_fast_sum)(p.hi, p.lo + cross);
}

// Divides by the count n = n_hi + n_lo.
LM_FN LM(lm_pair) LM(lm_pair_divide)(LM(lm_pair) total, REAL n_hi, REAL n_lo) {
  const REAL quotient = total.hi / n_hi;
  if (!(quotient - quotient == K(0.0))) return LM(lm_pair_of)(quotient, K(0.0));
  const REAL rest = LM(lm_fma)(-quotient, n_hi, total.hi) + (total.lo - quotient * n_lo);
  return LM(lm_two_sum)(quotient, rest / n_hi);
}

// The mean of some elements, and the sum of their squared distances to it.
typedef struct {
  LM(lm_pair) mean;
  LM(lm_pair) deviations;
} LM(lm_moments);

LM_FN LM(lm_moments) LM(lm_moments_of)(LM(lm_pair) mean, REAL deviations) {
  LM(lm_moments) m;
  m.mean = mean;
  m.deviations = LM(lm_pair_of)(deviations, K(0.0));
  return m;
}

// Joins the moments of `before` elements with those of the next `count` (Chan, Golub and LeVeque, Updating formulae and a
// pairwise algorithm for computing sample variances, 1979). `after`: before + count.
LM_FN LM(lm_moments) LM(lm_moments_join)(LM(lm_moments) total, REAL before, LM(lm_pair) mean, REAL deviations, REAL count, LM(lm_pair) after) {
  if (before == K(0.0)) return LM(lm_moments_of)(mean, deviations);
  {
    const LM(lm_pair) share = LM(lm_pair_divide)(LM(lm_pair_of)(count, K(0.0)), after.hi, after.lo);
    const LM(lm_pair) step = LM(lm_pair_join)(mean, LM(lm_pair_of)(-total.mean.hi, -total.mean.lo));
    const REAL between = (step.hi * step.hi) * (before * share.hi);
    // An infinite mean must stay infinite.
    if (step.hi - step.hi == K(0.0)) total.mean = LM(lm_pair_join)(total.mean, LM(lm_pair_product)(step, share));
    else total.mean = LM(lm_pair_of)(total.mean.hi + mean.hi, K(0.0));
    total.deviations = LM(lm_pair_add)(total.deviations, deviations + between);
    return total;
  }
}

#undef SIGN_BIT
