// Reductions over the threads of a team. Every thread gets the result. The tree is the same with and without shuffles:
// distances 16, 8, 4, 2, 1 inside a warp, then half of the warps, a quarter, ...
//
// lm_fold_NAME_TYPE(x, shared, t, team, first, step): t is the thread's index in its team of `team` threads. Values that use
// shared memory are in `shared` at first + t * step.

LM_FN int lm_fold_start(int team) { return team < 32 ? team / 2 : 16; }
LM_FN int lm_fold_next(int distance, int team) {
  if (distance >= 32) return distance == 32 ? 0 : distance / 2;
  return distance > 1 ? distance / 2 : team > 32 ? team / 2 : 0;
}

#define LM_ADD(a, b) ((a) + (b))
#define LM_MULTIPLY(a, b) ((a) * (b))

LM_DEFINE_FOLD(lm_fold_sum_f32, lm_f32, LM_ADD)
LM_DEFINE_FOLD(lm_fold_product_f32, lm_f32, LM_MULTIPLY)
LM_DEFINE_FOLD(lm_fold_maximum_f32, lm_f32, lm_maximum_f32)
LM_DEFINE_FOLD(lm_fold_minimum_f32, lm_f32, lm_minimum_f32)
#if LM_F64
LM_DEFINE_FOLD(lm_fold_sum_f64, lm_f64, LM_ADD)
LM_DEFINE_FOLD(lm_fold_product_f64, lm_f64, LM_MULTIPLY)
LM_DEFINE_FOLD(lm_fold_maximum_f64, lm_f64, lm_maximum_f64)
LM_DEFINE_FOLD(lm_fold_minimum_f64, lm_f64, lm_minimum_f64)
#endif

#define lm_infinity_f32 lm_real_f32(0x7f800000u)
#define lm_nan_f32 lm_real_f32(0x7fc00000u)
#define lm_infinity_f64 lm_real_f64((lm_u64)0x7ff << 52)
#define lm_nan_f64 lm_real_f64((lm_u64)0xfff << 51)
