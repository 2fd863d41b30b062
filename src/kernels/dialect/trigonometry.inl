// Sine and cosine, always computed in double. Written in the dialect of real.inl. Include it after real.inl, the polynomials
// lm_sin_tail_f64 and lm_cos_tail_f64, their short forms, and lm_two_over_pi_f64(i), which returns the i-th group of 24 bits
// of 2 / pi as an integer (kernels/dialect/trigonometry.h).

// An angle as a number of quarter turns and a remainder, with |hi + lo| at most slightly more than pi / 4.
typedef struct {
  lm_f64 hi;
  lm_f64 lo;
  int quarters;  // modulo 4
} lm_angle;

// Without the checks for infinity: all operands here are finite.
LM_FN lm_pair_f64 lm_exact_sum_f64(lm_f64 a, lm_f64 b) {
  const lm_f64 sum = a + b;
  const lm_f64 b_part = sum - a;
  return lm_pair_of_f64(sum, (a - (sum - b_part)) + (b - b_part));
}

LM_FN lm_angle lm_angle_of(lm_pair_f64 left, lm_f64 shifted) {
  lm_angle angle;
  angle.hi = left.hi;
  angle.lo = left.lo;
  angle.quarters = (int)(lm_bits_f64(shifted) & 3);
  return angle;
}

// x - n pi / 2. The first product is subtracted exactly.
LM_FN lm_angle lm_near_angle(lm_f64 x) {
  const lm_f64 shifted = lm_fma_f64(x, 0x1.45f306dc9c883p-1, 0x1.8p52);
  const lm_f64 n = shifted - 0x1.8p52;
  const lm_pair_f64 second = lm_product_f64(n, 0x1.1a62633145c07p-54);
  const lm_pair_f64 sum = lm_exact_sum_f64(lm_fma_f64(-n, 0x1.921fb54442d18p+0, x), -second.hi);
  const lm_f64 rest = sum.lo - lm_fma_f64(n, -0x1.f1976b7ed8fbcp-110, second.lo);
  return lm_angle_of(lm_fast_sum_f64(sum.hi, rest), shifted);
}

// Computes x 2 / pi modulo 4 from exact products of parts of x with groups of 24 bits. Whole turns are removed from each
// product, and the sum is accumulated in three parts. The result is multiplied by pi / 2.
LM_FN lm_angle lm_far_angle(lm_f64 x, int single) {
  const int very_far = x >= 0x1p500;
  const int first = very_far ? 17 : 0, groups = single ? 9 : 32;
  const lm_f64 scaled = very_far ? x * 0x1p-600 : x;
  const lm_f64 upper = single ? scaled : lm_real_f64(lm_bits_f64(scaled) & ~(((lm_u64)1 << 27) - 1));
  lm_f64 scale = very_far ? 0x1p168 : 0x1p-24, high = 0.0, middle = 0.0, low = 0.0;
  int i, part;
  for (i = 0; i < groups; ++i) {
    const lm_f64 group = lm_two_over_pi_f64(first + i) * scale;
    for (part = 0; part < (single ? 1 : 2); ++part) {
      const lm_f64 turns = (part == 0 ? upper : scaled - upper) * group;
      const lm_f64 rest = lm_fma_f64(lm_round_half_even_f64(turns * 0.25), -4.0, turns);
      const lm_pair_f64 a = lm_exact_sum_f64(high, rest);
      const lm_pair_f64 b = lm_exact_sum_f64(middle, a.lo);
      high = a.hi;
      middle = b.hi;
      low = low + b.lo;
    }
    scale = scale * 0x1p-24;
  }
  {
    const lm_f64 shifted = high + 0x1.8p52;
    const lm_pair_f64 a = lm_exact_sum_f64(high - (shifted - 0x1.8p52), middle);
    const lm_pair_f64 quarter = lm_exact_sum_f64(a.hi, a.lo + low);
    const lm_pair_f64 angle = lm_product_f64(quarter.hi, 0x1.921fb54442d18p+0);
    const lm_f64 rest = lm_fma_f64(quarter.hi, 0x1.1a62633145c07p-54, quarter.lo * 0x1.921fb54442d18p+0);
    return lm_angle_of(lm_fast_sum_f64(angle.hi, angle.lo + rest), shifted);
  }
}

LM_FN lm_f64 lm_sin_of_angle(lm_angle angle, int single) {
  const lm_f64 r = angle.hi, square = r * r;
  if (single) return lm_fma_f64(square * r, lm_short_sin_tail_f64(square), r);
  return r + lm_fma_f64(square * r, lm_sin_tail_f64(square), lm_fma_f64(square * -0.5, angle.lo, angle.lo));
}

LM_FN lm_f64 lm_cos_of_angle(lm_angle angle, int single) {
  const lm_f64 r = angle.hi, square = r * r, half_square = square * 0.5;
  const lm_f64 most = 1.0 - half_square;
  const lm_f64 lost = (1.0 - most) - half_square;
  if (single) return most + lm_fma_f64(square * square, lm_short_cos_tail_f64(square), lost);
  return most + (lost + lm_fma_f64(square * square, lm_cos_tail_f64(square), -(r * angle.lo)));
}

// `ahead`: quarter turns added to the sine: 0 for the sine, 1 for the cosine. `single`: the result is rounded to float.
LM_FN lm_f64 lm_circular_f64(lm_f64 x, int ahead, int single) {
  const lm_f64 a = lm_abs_f64(x), infinity = lm_real_f64((lm_u64)0x7ff << 52);
  if (x != x) return x + x;
  if (a == infinity) return lm_real_f64((lm_u64)0x7ff8 << 48);
  {
    const lm_angle angle = a <= 0x1p27 ? lm_near_angle(a) : lm_far_angle(a, single);
    const int quarters = angle.quarters + ahead;
    const lm_f64 value = quarters & 1 ? lm_cos_of_angle(angle, single) : lm_sin_of_angle(angle, single);
    const lm_u64 turned = (lm_u64)((quarters >> 1) & 1) << 63;
    const lm_u64 mirrored = ahead ? 0 : lm_bits_f64(x) & ((lm_u64)1 << 63);
    return lm_real_f64(lm_bits_f64(value) ^ turned ^ mirrored);
  }
}

LM_FN lm_f64 lm_sin_f64(lm_f64 x) { return lm_circular_f64(x, 0, 0); }
LM_FN lm_f64 lm_cos_f64(lm_f64 x) { return lm_circular_f64(x, 1, 0); }
LM_FN lm_f32 lm_sin_f32(lm_f32 x) { return (lm_f32)lm_circular_f64((lm_f64)x, 0, 1); }
LM_FN lm_f32 lm_cos_f32(lm_f32 x) { return (lm_f32)lm_circular_f64((lm_f64)x, 1, 1); }
