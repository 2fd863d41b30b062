// Conversions from f64, or through it, in the dialect of real.inl. Include it after convert.inl.

// Rounds to odd: toward zero, with the last bit set if the result is inexact. A second rounding then equals a single one.
LM_FN lm_f32 lm_odd_f32_from_f64(lm_f64 x) {
  const lm_f32 nearest = (lm_f32)x;
  const lm_f64 back = (lm_f64)nearest;
  const lm_u32 toward_zero = lm_bits_f32(nearest) - (lm_abs_f64(back) > lm_abs_f64(x) ? 1u : 0u);
  return back < x || back > x ? lm_real_f32(toward_zero | 1u) : nearest;
}

// Rounds to odd. Beyond 53 bits the last 11 bits become one, which is set if any of them was.
LM_FN lm_f64 lm_odd_f64_from_s64(lm_s64 x) {
  const lm_s64 exact = (lm_s64)1 << 53;
  if (x >= -exact && x <= exact) return (lm_f64)x;
  return (lm_f64)((x >> 11) | ((x & 2047) != 0 ? 1 : 0)) * 2048.0;
}

LM_FN lm_u16 lm_bf16_from_f64(lm_f64 x) { return lm_bf16_from_f32(lm_odd_f32_from_f64(x)); }
LM_FN lm_u16 lm_f16_from_f64(lm_f64 x) { return lm_f16_from_f32(lm_odd_f32_from_f64(x)); }
LM_FN lm_u8 lm_f8_e5m2_from_f64(lm_f64 x) { return lm_f8_e5m2_from_f32(lm_odd_f32_from_f64(x)); }
LM_FN lm_u8 lm_f8_e4m3_from_f64(lm_f64 x) { return lm_f8_e4m3_from_f32(lm_odd_f32_from_f64(x)); }
