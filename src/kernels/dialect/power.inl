// x^beta for a real constant, as C's pow. Always computed in double. Written in the dialect of real.inl; include it after
// real.inl.

// The terms of artanh(s) 2 / s from s^4 on, divided by s^4: 2 / (2 i + 5), as a polynomial in s^2.
LM_FN lm_f64 lm_artanh_series_f64(lm_f64 x) {
  lm_f64 total = 2.0 / 25.0;
  int i;
  for (i = 9; i >= 0; --i) total = lm_fma_f64(total, x, 2.0 / (lm_f64)(2 * i + 5));
  return total;
}

// log(1 + f) = 2 artanh(s), s = f / (2 + f). Terms up to s^3 are computed as pairs.
LM_FN lm_pair_f64 lm_log1p_pair_f64(lm_f64 f) {
  const lm_pair_f64 bottom = lm_fast_sum_f64(2.0, f);
  const lm_f64 s_hi = f / bottom.hi;
  const lm_f64 rest = lm_fma_f64(-s_hi, bottom.lo, lm_fma_f64(-s_hi, bottom.hi, f));
  const lm_pair_f64 s = lm_fast_sum_f64(s_hi, rest / bottom.hi);
  const lm_pair_f64 square = lm_pair_product_f64(s, s);
  lm_pair_f64 third = lm_fast_sum_f64(2.0 / 3.0, square.hi * lm_artanh_series_f64(square.hi));
  third.lo = third.lo + 0x1.5555555555555p-55;
  {
    const lm_pair_f64 cubic = lm_pair_product_f64(lm_pair_product_f64(s, square), third);
    const lm_pair_f64 sum = lm_fast_sum_f64(s.hi * 2.0, cubic.hi);
    return lm_fast_sum_f64(sum.hi, sum.lo + lm_fma_f64(s.lo, 2.0, cubic.lo));
  }
}

LM_FN lm_pair_f64 lm_log_pair_f64(lm_f64 x) {
  const lm_log_parts_f64 e = lm_reduce_log_f64(x, 1);
  const lm_pair_f64 mantissa = lm_log1p_pair_f64(e.f);
  const lm_pair_f64 high = lm_fast_sum_f64(e.k * 0x1.62e42feep-1, mantissa.hi);
  const lm_pair_f64 low = lm_product_f64(e.k, 0x1.a39ef35793c76p-33);
  const lm_f64 last = lm_fma_f64(e.k, 0x1.cc01f97b57a08p-87, low.lo + mantissa.lo);
  const lm_pair_f64 middle = lm_fast_sum_f64(high.hi, low.hi);
  return lm_fast_sum_f64(middle.hi, (middle.lo + high.lo) + last);
}

// x^beta for 0 < x < infinity. `to_last_bit` is set if the result is not rounded to float afterwards.
LM_FN lm_f64 lm_pow_of_positive_f64(lm_f64 x, lm_f64 beta, int to_last_bit) {
  if (!to_last_bit) return lm_exp_f64(lm_log_f64(x) * beta);
  {
    const lm_pair_f64 logarithm = lm_log_pair_f64(x);
    const lm_f64 y = logarithm.hi * beta;
    const lm_f64 exact_low = lm_fma_f64(logarithm.lo, beta, lm_fma_f64(logarithm.hi, beta, -y));
    const lm_f64 low = lm_abs_f64(y) < 1000.0 ? exact_low : 0.0;
    const lm_exp_parts_f64 e = lm_reduce_exp_of_pair_f64(lm_at_most_f64(lm_at_least_f64(y, -746.0), 710.0), low, 2 * 1023);
    return lm_scale_by_power_f64(lm_exp_polynomial_f64(e.r), e.bits);
  }
}

LM_FN lm_f64 lm_pow_f64(lm_f64 x, lm_f64 beta, int to_last_bit) {
  const lm_f64 infinity = lm_real_f64((lm_u64)0x7ff << 52);
  const lm_f64 magnitude = lm_abs_f64(x);
  const int endless = lm_abs_f64(beta) == infinity;
  const int integer = endless || lm_floor_f64(beta) == beta;
  const int odd = integer && !endless && lm_floor_f64(beta * 0.5) != beta * 0.5;
  lm_f64 result;
  if (endless) {
    result = magnitude == 1.0 ? 1.0 : (magnitude < 1.0) == (beta > 0.0) ? 0.0 : infinity;
  } else {
    result = lm_pow_of_positive_f64(magnitude, beta, to_last_bit);
  }
  if (magnitude == 0.0) result = beta > 0.0 ? 0.0 : infinity;
  if (magnitude == infinity) result = beta > 0.0 ? infinity : 0.0;
  if (odd) result = lm_copysign_f64(result, x);
  if (!integer && x < 0.0 && x > -infinity) result = lm_real_f64((lm_u64)0x7ff8 << 48);
  return x != x ? x + x : result;
}
