// Elementary functions of one floating-point type, in text that is valid C++, CUDA C++ and OpenCL C 1.2. The interpreter
// includes it, and generated GPU programs contain it. Its operations equal those of the CPU backend's vector mathematics one
// by one, so the bits are the same if fma, division and square root are exact and nothing is flushed to zero.
//
// Included once per type, with these defined:
//   REAL, BITS, SBITS   float, u32, s32 or double, u64, s64
//   LM(name)            name##_f32 or name##_f64
//   K(literal)          the literal in that type
//   PICK(a, b)          K(a) for float, b for double
//   MANTISSA, BIAS      23, 127 or 52, 1023
//   SINGLE              1 for float, 0 for double
// These must be defined before: LM_FN (qualifiers of a function), LM(lm_fma), LM(lm_sqrt), LM(lm_floor), LM(lm_bits),
// LM(lm_real), and the polynomials LM(lm_exp_tail), LM(lm_log_tail), LM(lm_erf_tail), LM(lm_mills_top), LM(lm_mills_rest) and
// lm_cdf_root_f32.
//
// Notation: y = k ln 2 + r, z = exp(r) - 1, s = 2^k, so exp(y) = s + s z; x = 2^k (1 + f).

#define SIGN_BIT ((BITS)1 << (sizeof(BITS) * 8 - 1))
#define MAGNITUDE_OF(x) LM(lm_real)(LM(lm_bits)(x) & (SIGN_BIT - 1))
#define INF LM(lm_real)(((BITS)(2 * BIAS + 1)) << MANTISSA)
#define QUIET_NAN LM(lm_real)(((BITS)(4 * BIAS + 3)) << (MANTISSA - 1))
#define LN2_HIGH PICK(0x1.62e4p-1, 0x1.62e42feep-1)
#define LN2_LOW PICK(0x1.7f7d1cp-20, 0x1.a39ef35793c76p-33)
#define SHIFTER PICK(0x1.8p23, 0x1.8p52)

LM_FN REAL LM(lm_abs)(REAL x) { return MAGNITUDE_OF(x); }
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

// Every value from 2^MANTISSA on is an integer. For smaller ones, adding that number rounds to an integer.
LM_FN REAL LM(lm_round_half_even)(REAL x) {
  const REAL shifter = PICK(0x1p23, 0x1p52);
  const REAL magnitude = MAGNITUDE_OF(x);
  const REAL rounded = LM(lm_copysign)((magnitude + shifter) - shifter, x);
  return magnitude >= shifter ? x : rounded;
}

// ---- exp and its relatives

typedef struct {
  REAL r;
  REAL k;
  BITS bits;  // its lowest bits are k + offset
} LM(lm_exp_parts);

LM_FN LM(lm_exp_parts) LM(lm_reduce_exp)(REAL y, int offset) {
  LM(lm_exp_parts) e;
  const REAL shifter = SHIFTER + (REAL)offset;
  const REAL shifted = LM(lm_fma)(y, PICK(0x1.715476p+0, 0x1.71547652b82fep+0), shifter);
  e.k = shifted - shifter;
  e.r = LM(lm_fma)(e.k, -LN2_LOW, LM(lm_fma)(e.k, -LN2_HIGH, y));
  e.bits = LM(lm_bits)(shifted);
  return e;
}

// `low` is a correction to y below its last place.
LM_FN LM(lm_exp_parts) LM(lm_reduce_exp_of_pair)(REAL y, REAL low, int offset) {
  LM(lm_exp_parts) e;
  const REAL shifter = SHIFTER + (REAL)offset;
  const REAL shifted = LM(lm_fma)(y, PICK(0x1.715476p+0, 0x1.71547652b82fep+0), shifter);
  e.k = shifted - shifter;
  e.r = LM(lm_fma)(e.k, -LN2_HIGH, y) + LM(lm_fma)(e.k, -LN2_LOW, low);
  e.bits = LM(lm_bits)(shifted);
  return e;
}

LM_FN REAL LM(lm_exp_polynomial)(REAL r) {
  return LM(lm_fma)(LM(lm_fma)(LM(lm_exp_tail)(r), r, K(1.0)), r, K(1.0));
}
LM_FN REAL LM(lm_expm1_polynomial)(REAL r) { return LM(lm_fma)(LM(lm_exp_tail)(r) * r, r, r); }

// x 2^k, if the reduction's offset was twice the bias. Multiplies by two normal factors; the first product is exact.
LM_FN REAL LM(lm_scale_by_power)(REAL x, BITS bits) {
  const BITS half_of_k = bits >> 1;
  return (x * LM(lm_real)(half_of_k << MANTISSA)) * LM(lm_real)((bits - half_of_k) << MANTISSA);
}
LM_FN REAL LM(lm_power_of_two)(BITS bits) { return LM(lm_real)(bits << MANTISSA); }

LM_FN REAL LM(lm_exp)(REAL x) {
  const REAL y = LM(lm_at_most)(LM(lm_at_least)(x, PICK(-104.0, -746.0)), PICK(89.0, 710.0));
  const LM(lm_exp_parts) e = LM(lm_reduce_exp)(y, 2 * BIAS);
  return LM(lm_scale_by_power)(LM(lm_exp_polynomial)(e.r), e.bits);
}

LM_FN REAL LM(lm_expm1)(REAL x) {
  const REAL y = LM(lm_at_most)(LM(lm_at_least)(x, PICK(-18.0, -38.0)), PICK(89.0, 710.0));
  const LM(lm_exp_parts) e = LM(lm_reduce_exp)(y, BIAS - 1);
  const REAL half_s = LM(lm_power_of_two)(e.bits);
  const REAL result = LM(lm_fma)(half_s, LM(lm_expm1_polynomial)(e.r), half_s - K(0.5)) * K(2.0);
  return MAGNITUDE_OF(x) < PICK(0x1p-25, 0x1p-54) ? x : result;
}

LM_FN REAL LM(lm_tanh)(REAL x) {
  const REAL y = LM(lm_at_most)(MAGNITUDE_OF(x), PICK(10.0, 22.0)) * K(-2.0);
  const LM(lm_exp_parts) e = LM(lm_reduce_exp)(y, BIAS);
  const REAL s = LM(lm_power_of_two)(e.bits);
  const REAL z = LM(lm_expm1_polynomial)(e.r);
  return LM(lm_copysign)(LM(lm_fma)(s, z, s - K(1.0)) / LM(lm_fma)(s, z, s + K(1.0)), x);
}

// c / (c + c exp(-x)) with c = 1, or with a small power of two if exp(-x) would overflow.
LM_FN REAL LM(lm_sigmoid)(REAL x) {
  const REAL y = LM(lm_at_most)(LM(lm_at_least)(LM(lm_negate)(x), PICK(-17.5, -37.5)), PICK(104.0, 746.0));
  const REAL shifter = SHIFTER + (REAL)BIAS;
  const REAL shifted = LM(lm_at_least)(LM(lm_fma)(y, PICK(0x1.715476p+0, 0x1.71547652b82fep+0), shifter), shifter - (REAL)MANTISSA);
  const REAL k = shifted - shifter;
  const REAL r = LM(lm_fma)(k, -LN2_LOW, LM(lm_fma)(k, -LN2_HIGH, y));
  const REAL c = x < PICK(-80.0, -700.0) ? PICK(0x1p-64, 0x1p-512) : K(1.0);
  const BITS c_field = LM(lm_bits)(c) - LM(lm_bits)(K(1.0));
  const REAL cs = LM(lm_real)((LM(lm_bits)(shifted) << MANTISSA) + c_field);
  const REAL sum = cs + c;
  const REAL rest = c - (sum - cs);
  return c / (sum + LM(lm_fma)(cs, LM(lm_expm1_polynomial)(r), rest));
}

// exp(-a^2 / 2), with the square in two parts.
LM_FN LM(lm_exp_parts) LM(lm_reduce_gauss)(REAL a, int offset) {
  const REAL square = a * a;
  const REAL rest = LM(lm_fma)(a, a, -square);
  return LM(lm_reduce_exp_of_pair)(square * K(-0.5), rest * K(-0.5), offset);
}

// normal_cdf(-a) = 2^k times the result.
LM_FN REAL LM(lm_gauss_tail)(REAL a, REAL r) {
  const REAL top = LM(lm_mills_top)(a);
  const REAL bottom = LM(lm_fma)(a, LM(lm_fma)(top, PICK(0x1.40d932p+1, 0x1.40d931ff62706p+1), LM(lm_mills_rest)(a)), K(1.5));
  const REAL mills = top / bottom;
  return LM(lm_fma)(LM(lm_expm1_polynomial)(r), mills, mills);
}

LM_FN REAL LM(lm_erf)(REAL x) {
  const REAL near_zero = LM(lm_fma)(x, LM(lm_erf_tail)(x * x), x);
  const REAL a = LM(lm_at_most)(MAGNITUDE_OF(x) * PICK(0x1.6a09e6p+0, 0x1.6a09e667f3bcdp+0), PICK(6.0, 9.0));
  const LM(lm_exp_parts) e = LM(lm_reduce_gauss)(a, BIAS + 1);
  const REAL far = LM(lm_fma)(-LM(lm_power_of_two)(e.bits), LM(lm_gauss_tail)(a, e.r), K(1.0));
  return MAGNITUDE_OF(x) < K(1.0) ? near_zero : LM(lm_copysign)(far, x);
}

// Keeps a small relative error in the left tail, down to the smallest number of the format.
LM_FN REAL LM(lm_cdf_with_tails)(REAL x) {
  const REAL a = LM(lm_at_most)(MAGNITUDE_OF(x), PICK(14.5, 38.7));
  const LM(lm_exp_parts) e = LM(lm_reduce_gauss)(a, 2 * BIAS);
  const REAL left = LM(lm_scale_by_power)(LM(lm_gauss_tail)(a, e.r), e.bits);
  return x > K(0.0) ? K(1.0) - left : left;
}

// For float, the fourth root of the left tail is a polynomial down to x = -5.5.
LM_FN REAL LM(lm_normal_cdf)(REAL x) {
#if SINGLE
  if (!(x < -5.5f)) {
    const REAL root = lm_cdf_root_f32(LM(lm_at_most)(MAGNITUDE_OF(x), 5.5f));
    const REAL square = root * root;
    const REAL left = (square * 0.5f) * square;
    return x > 0.0f ? 1.0f - left : left;
  }
#endif
  return LM(lm_cdf_with_tails)(x);
}

// ---- logarithms

typedef struct {
  REAL f;
  REAL k;
  SBITS k_int;  // without the shift for subnormals
} LM(lm_log_parts);

LM_FN LM(lm_log_parts) LM(lm_reduce_log)(REAL x, int may_be_subnormal) {
  LM(lm_log_parts) e;
  const int tiny = may_be_subnormal && x < PICK(0x1p-126, 0x1p-1022);
  const REAL lifted = tiny ? x * PICK(0x1p24, 0x1p53) : x;
  const BITS bits = LM(lm_bits)(lifted);
  e.k_int = (SBITS)(bits - LM(lm_bits)(PICK(0x1.6a09e6p-1, 0x1.6a09e667f3bcdp-1))) >> MANTISSA;
  e.f = LM(lm_real)(bits - ((BITS)e.k_int << MANTISSA)) - K(1.0);
  e.k = tiny ? (REAL)e.k_int - (REAL)(MANTISSA + 1) : (REAL)e.k_int;
  return e;
}

LM_FN REAL LM(lm_log_of_reduced)(REAL k, REAL f) {
  const REAL log_mantissa = LM(lm_fma)(f * f, LM(lm_log_tail)(f), f);
  return LM(lm_fma)(k, LN2_HIGH, LM(lm_fma)(k, LN2_LOW, log_mantissa));
}

// `result` for 0 < x < infinity. Elsewhere the result depends only on x.
LM_FN REAL LM(lm_with_log_edges)(REAL x, REAL result) {
  if (!(x < INF)) result = x + x;
  if (x < K(0.0)) result = QUIET_NAN;
  return x == K(0.0) ? -INF : result;
}

LM_FN REAL LM(lm_log)(REAL x) {
  const LM(lm_log_parts) e = LM(lm_reduce_log)(x, 1);
  return LM(lm_with_log_edges)(x, LM(lm_log_of_reduced)(e.k, e.f));
}

// 1 + x = u + c exactly. The log of u's mantissa, with c scaled by the same power of two and added to f.
LM_FN REAL LM(lm_log1p)(REAL x) {
  const REAL u = x + K(1.0);
  const REAL part = u - K(1.0);
  const REAL c = (K(1.0) - (u - part)) + (x - part);
  const LM(lm_log_parts) e = LM(lm_reduce_log)(u, 0);
  const SBITS k = e.k_int > 60 ? 60 : e.k_int;
  const REAL unscale = LM(lm_real)(LM(lm_bits)(K(1.0)) - ((BITS)k << MANTISSA));
  const REAL result = LM(lm_with_log_edges)(u, LM(lm_log_of_reduced)(e.k, LM(lm_fma)(c, unscale, e.f)));
  return MAGNITUDE_OF(x) < PICK(0x1p-25, 0x1p-54) ? x : result;
}

// sqrt with pow's special cases: pow(-0, 0.5) is +0, and pow(-infinity, 0.5) is +infinity.
LM_FN REAL LM(lm_pow_half)(REAL x) { return x == -INF ? INF : LM(lm_sqrt)(x + K(0.0)); }

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

// ---- to integers: half to even, saturating, NaN becomes 0

// For ranges that fit the mantissa: adding 1.5 2^MANTISSA rounds to an integer, which is then in the lowest bits.
LM_FN BITS LM(lm_narrow_integer)(REAL x, REAL low, REAL high) {
  const REAL known = x != x ? K(0.0) : x;
  return LM(lm_bits)(LM(lm_at_most)(LM(lm_at_least)(known, low), high) + SHIFTER);
}
LM_FN lm_s8 LM(lm_s8_from)(REAL x) { return (lm_s8)(lm_u8)LM(lm_narrow_integer)(x, K(-128.0), K(127.0)); }
LM_FN lm_u8 LM(lm_u8_from)(REAL x) { return (lm_u8)LM(lm_narrow_integer)(x, K(0.0), K(255.0)); }
LM_FN lm_u8 LM(lm_s4_from)(REAL x) { return (lm_u8)LM(lm_narrow_integer)(x, K(-8.0), K(7.0)) & 15; }  // in the low half
LM_FN lm_u8 LM(lm_u4_from)(REAL x) { return (lm_u8)LM(lm_narrow_integer)(x, K(0.0), K(15.0)); }
LM_FN int LM(lm_boolean_from)(REAL x) { return x != K(0.0); }

// For ranges whose largest value may not be a floating-point number: convert values inside, and return the ends for others.
LM_FN lm_s32 LM(lm_s32_from)(REAL x) {
  if (x >= K(0x1p31)) return 0x7fffffff;
  if (x < -K(0x1p31)) return -0x7fffffff - 1;
  return x != x ? 0 : (lm_s32)LM(lm_round_half_even)(x);
}
LM_FN lm_s64 LM(lm_s64_from)(REAL x) {
  const lm_s64 largest = (lm_s64)(~(lm_u64)0 >> 1);
  if (x >= K(0x1p63)) return largest;
  if (x < -K(0x1p63)) return -largest - 1;
  return x != x ? 0 : (lm_s64)LM(lm_round_half_even)(x);
}

#undef SIGN_BIT
#undef MAGNITUDE_OF
#undef INF
#undef QUIET_NAN
#undef LN2_HIGH
#undef LN2_LOW
#undef SHIFTER
