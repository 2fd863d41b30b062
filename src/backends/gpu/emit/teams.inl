// Reductions over the lanes of a row (schedule/sum_order.h), which the threads of a team have. Every thread gets the result. The
// tree is the same for any number of threads, with and without shuffles: distances 16, 8, 4, 2, 1 inside 32 lanes, then half of
// the lanes, a quarter, ..., 32. The lower lane is the first operand, which decides the sign of a maximum of zeros.
//
// lm_fold_NAME_TYPE(x, shared, t, team, first, step): t is the thread's index in its team of `team` threads, with one lane each.
// Values that use shared memory are in `shared` at first + t * step. Teams of adjacent rows (step > 1) use no shuffles.
// lm_fold_NAME_TYPE_of_lanes(x, count, ...): the thread has the lanes t, t + team, ..., `count` of them. It overwrites x.

#ifdef LM_SHUFFLE
#define LM_FOLD_WARP_BY_SHUFFLES(combine)                                                   \
  if (step == 1) {                                                                          \
    LM_UNROLL for (int distance = team < 32 ? team / 2 : 16; distance > 0; distance /= 2)   \
      x = combine(x, LM_SHUFFLE, t & distance);                                             \
    return x;                                                                               \
  }
#define LM_FOLD_WARPS_BY_SHUFFLES(combine)                                                  \
  if (step == 1) {                                                                          \
    LM_BARRIER;                                                                             \
    if (t % 32 == 0) shared[(first + t) / 32] = x;                                          \
    LM_BARRIER;                                                                             \
    x = shared[first / 32 + t % 32 % (team / 32)];                                          \
    LM_UNROLL for (int distance = team / 64; distance > 0; distance /= 2)                   \
      x = combine(x, LM_SHUFFLE, t & distance);                                             \
    return x;                                                                               \
  }
#else
#define LM_FOLD_WARP_BY_SHUFFLES(combine)
#define LM_FOLD_WARPS_BY_SHUFFLES(combine)
#endif
#define LM_FOLD_BY_MEMORY(combine, from, to)                                                \
  for (int distance = from; distance >= to; distance /= 2) {                                \
    LM_BARRIER;                                                                             \
    shared[first + t * step] = x;                                                           \
    LM_BARRIER;                                                                             \
    x = combine(x, shared[first + (t ^ distance) * step], t & distance);                    \
  }
#define LM_DEFINE_FOLD(name, type, combine)                                                 \
  LM_FN type name##_warp(type x, LM_LOCAL type* shared, int t, int team, int first, int step) { \
    LM_FOLD_WARP_BY_SHUFFLES(combine)                                                       \
    LM_FOLD_BY_MEMORY(combine, (team < 32 ? team / 2 : 16), 1)                              \
    return x;                                                                               \
  }                                                                                         \
  LM_FN type name##_warps(type x, LM_LOCAL type* shared, int t, int team, int first, int step) { \
    if (team <= 32) return x;                                                               \
    LM_FOLD_WARPS_BY_SHUFFLES(combine)                                                      \
    LM_FOLD_BY_MEMORY(combine, team / 2, 32)                                                \
    return x;                                                                               \
  }                                                                                         \
  LM_FN type name(type x, LM_LOCAL type* shared, int t, int team, int first, int step) {    \
    return name##_warps(name##_warp(x, shared, t, team, first, step), shared, t, team, first, step); \
  }                                                                                         \
  LM_FN type name##_of_lanes(type* x, int count, LM_LOCAL type* shared, int t, int team, int first, int step) { \
    const int inside = team >= 32 ? 1 : count * team < 32 ? count : 32 / team;              \
    LM_UNROLL for (int apart = inside / 2; apart > 0; apart /= 2)                                 \
      LM_UNROLL for (int warp = 0; warp < count; warp += inside)                            \
        LM_UNROLL for (int lane = warp; lane < warp + apart; ++lane) x[lane] = combine(x[lane], x[lane + apart], 0); \
    LM_UNROLL for (int warp = 0; warp < count; warp += inside)                              \
      x[warp] = name##_warp(x[warp], shared, t, team, first, step);                         \
    LM_UNROLL for (int apart = count / 2; apart >= inside; apart /= 2)                            \
      LM_UNROLL for (int warp = 0; warp < apart; warp += inside) x[warp] = combine(x[warp], x[warp + apart], 0); \
    return name##_warps(x[0], shared, t, team, first, step);                                \
  }

// Of a lane and another one. `is_high`: the other one is the lower lane.
#define LM_ADD(a, b, is_high) ((a) + (b))
#define LM_MULTIPLY(a, b, is_high) ((a) * (b))
#define LM_MAXIMUM_F32(a, b, is_high) ((is_high) ? lm_maximum_f32(b, a) : lm_maximum_f32(a, b))
#define LM_MINIMUM_F32(a, b, is_high) ((is_high) ? lm_minimum_f32(b, a) : lm_minimum_f32(a, b))
#define LM_MAXIMUM_F64(a, b, is_high) ((is_high) ? lm_maximum_f64(b, a) : lm_maximum_f64(a, b))
#define LM_MINIMUM_F64(a, b, is_high) ((is_high) ? lm_minimum_f64(b, a) : lm_minimum_f64(a, b))

LM_DEFINE_FOLD(lm_fold_sum_f32, lm_f32, LM_ADD)
LM_DEFINE_FOLD(lm_fold_product_f32, lm_f32, LM_MULTIPLY)
LM_DEFINE_FOLD(lm_fold_maximum_f32, lm_f32, LM_MAXIMUM_F32)
LM_DEFINE_FOLD(lm_fold_minimum_f32, lm_f32, LM_MINIMUM_F32)
#if LM_F64
LM_DEFINE_FOLD(lm_fold_sum_f64, lm_f64, LM_ADD)
LM_DEFINE_FOLD(lm_fold_product_f64, lm_f64, LM_MULTIPLY)
LM_DEFINE_FOLD(lm_fold_maximum_f64, lm_f64, LM_MAXIMUM_F64)
LM_DEFINE_FOLD(lm_fold_minimum_f64, lm_f64, LM_MINIMUM_F64)
#endif

#define lm_infinity_f32 lm_real_f32(0x7f800000u)
#define lm_nan_f32 lm_real_f32(0x7fc00000u)
#define lm_infinity_f64 lm_real_f64((lm_u64)0x7ff << 52)
#define lm_nan_f64 lm_real_f64((lm_u64)0xfff << 51)
