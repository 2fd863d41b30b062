// Reductions over the threads of a team. Every thread gets the result. The tree is the same with and without shuffles:
// distances 16, 8, 4, 2, 1 inside a warp, then half of the warps, a quarter, ...
//
// lm_fold_NAME_TYPE(x, shared, t, team, first, step): t is the thread's index in its team of `team` threads. Values that use
// shared memory are in `shared` at first + t * step. Teams of adjacent rows (step > 1) use no shuffles.

LM_FN int lm_fold_start(int team) { return team < 32 ? team / 2 : 16; }
LM_FN int lm_fold_next(int distance, int team) {
  if (distance >= 32) return distance == 32 ? 0 : distance / 2;
  return distance > 1 ? distance / 2 : team > 32 ? team / 2 : 0;
}

#ifdef LM_SHUFFLE
#define LM_FOLD_BY_SHUFFLES(combine)                                                        \
  if (step == 1) {                                                                          \
    LM_UNROLL for (int distance = team < 32 ? team / 2 : 16; distance > 0; distance /= 2)   \
      x = combine(x, LM_SHUFFLE);                                                           \
    if (team <= 32) return x;                                                               \
    LM_BARRIER;                                                                             \
    if (t % 32 == 0) shared[(first + t) / 32] = x;                                          \
    LM_BARRIER;                                                                             \
    x = shared[first / 32 + t % 32 % (team / 32)];                                          \
    LM_UNROLL for (int distance = team / 64; distance > 0; distance /= 2)                   \
      x = combine(x, LM_SHUFFLE);                                                           \
    return x;                                                                               \
  }
#else
#define LM_FOLD_BY_SHUFFLES(combine)
#endif
#define LM_DEFINE_FOLD(name, type, combine)                                                 \
  LM_FN type name(type x, LM_LOCAL type* shared, int t, int team, int first, int step) {    \
    LM_FOLD_BY_SHUFFLES(combine)                                                            \
    for (int distance = lm_fold_start(team); distance > 0; distance = lm_fold_next(distance, team)) { \
      LM_BARRIER;                                                                           \
      shared[first + t * step] = x;                                                         \
      LM_BARRIER;                                                                           \
      x = combine(x, shared[first + (t ^ distance) * step]);                                \
    }                                                                                       \
    return x;                                                                               \
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
