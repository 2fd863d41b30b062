// Conversions between f32 and the small floats in integer arithmetic, written in the dialect of real.inl. A small float has m
// mantissa bits and exponent bias B; `code` is its bits without the sign. Rounding is half to even; NaN becomes the canonical
// quiet NaN with the same sign. A device whose own instruction returns the same bits may define LM_HAS_F16 or LM_HAS_BF16 and
// provide the function.

// Normal results are rounded as integers. Subnormal results are rounded by adding the float whose last place is the smallest
// subnormal. `infinity` is the first code past the finite ones and `nan` the code of NaN; if they are equal, the type has no
// infinity.
LM_FN lm_u32 lm_small_code(lm_f32 x, int width, int mantissa, int bias, lm_u32 infinity, lm_u32 nan) {
  const lm_u32 bits = lm_bits_f32(x);
  const int dropped = 23 - mantissa;
  const lm_u32 magnitude = bits & 0x7fffffffu;
  const lm_u32 odd = (magnitude >> dropped) & 1u;
  const lm_u32 rebias = (lm_u32)(127 - bias) << 23;
  const lm_u32 half_step = (1u << (dropped - 1)) - 1u;
  const lm_u32 normal = (magnitude + odd + half_step - rebias) >> dropped;
  const lm_u32 shifter = (lm_u32)(127 + 23 + 1 - bias - mantissa) << 23;
  const lm_u32 subnormal = lm_bits_f32(lm_real_f32(magnitude) + lm_real_f32(shifter)) - shifter;
  lm_u32 code = magnitude < ((lm_u32)(128 - bias) << 23) ? subnormal : normal;
  if (code > infinity) code = infinity;
  if (infinity != nan && magnitude > 0x7f800000u) code = nan;
  return ((bits & 0x80000000u) >> (32 - width)) | code;
}

LM_FN lm_f32 lm_small_value(lm_u32 raw, int width, int mantissa, int bias, lm_u32 infinity, lm_u32 nan) {
  const int shift = 23 - mantissa;
  const lm_u32 sign_bit = 1u << (width - 1);
  const lm_u32 sign = (raw & sign_bit) << (32 - width);
  const lm_u32 code = raw & (sign_bit - 1u);
  const lm_u32 normal = (code << shift) + ((lm_u32)(127 - bias) << 23);
  const lm_f32 smallest_normal = lm_real_f32((lm_u32)(128 - bias) << 23);
  lm_u32 bits = normal;
  // A subnormal gets a temporary exponent, which an exact subtraction removes.
  if (code < (1u << mantissa)) bits = lm_bits_f32(lm_real_f32(normal + (1u << 23)) - smallest_normal);
  if (infinity != nan) {
    if (code >= infinity) bits = (code << shift) | 0x7f800000u;
    if (code > infinity) bits |= 0x00400000u;
  } else if (code == nan) {
    bits = 0x7fc00000u;
  }
  return lm_real_f32(bits | sign);
}

// Element `index` of the byte that it shares with its neighbour. The element with the even index is in the lower half.
LM_FN lm_f32 lm_f32_from_u4(lm_u8 both, lm_s64 index) { return (lm_f32)((both >> (int)((index & 1) * 4)) & 15); }
LM_FN lm_f32 lm_f32_from_s4(lm_u8 both, lm_s64 index) { return (lm_f32)((((both >> (int)((index & 1) * 4)) & 15) ^ 8) - 8); }

#ifndef LM_HAS_BF16
LM_FN lm_u16 lm_bf16_from_f32(lm_f32 x) {
  const lm_u32 bits = lm_bits_f32(x);
  if (x != x) return (lm_u16)(((bits & 0x80000000u) >> 16) | 0x7fc0u);
  return (lm_u16)((bits + ((bits >> 16) & 1u) + 0x7fffu) >> 16);
}
#endif
LM_FN lm_f32 lm_f32_from_bf16(lm_u16 raw) { return lm_real_f32((lm_u32)raw << 16); }

#ifndef LM_HAS_F16
LM_FN lm_u16 lm_f16_from_f32(lm_f32 x) { return (lm_u16)lm_small_code(x, 16, 10, 15, 0x7c00u, 0x7e00u); }
LM_FN lm_f32 lm_f32_from_f16(lm_u16 raw) { return lm_small_value(raw, 16, 10, 15, 0x7c00u, 0x7e00u); }
#endif

LM_FN lm_u8 lm_f8_e5m2_from_f32(lm_f32 x) { return (lm_u8)lm_small_code(x, 8, 2, 15, 0x7cu, 0x7eu); }
LM_FN lm_f32 lm_f32_from_f8_e5m2(lm_u8 raw) { return lm_small_value(raw, 8, 2, 15, 0x7cu, 0x7eu); }
LM_FN lm_u8 lm_f8_e4m3_from_f32(lm_f32 x) { return (lm_u8)lm_small_code(x, 8, 3, 7, 0x7fu, 0x7fu); }
LM_FN lm_f32 lm_f32_from_f8_e4m3(lm_u8 raw) { return lm_small_value(raw, 8, 3, 7, 0x7fu, 0x7fu); }
