// The dialect in CUDA C++ (NVRTC, no headers).
#pragma nv_diag_suppress 177  // a program contains functions that its kernel may not need
typedef float lm_f32;
typedef double lm_f64;
typedef signed char lm_s8;
typedef unsigned char lm_u8;
typedef unsigned short lm_u16;
typedef int lm_s32;
typedef unsigned int lm_u32;
typedef long long lm_s64;
typedef unsigned long long lm_u64;

#define LM_FN static __device__ __forceinline__
#define LM_GLOBAL
#define LM_SHARED __shared__
#define LM_UNROLL _Pragma("unroll")
#if LM_DISJOINT
#define LM_BUFFER char* __restrict__
#else
#define LM_BUFFER char*
#endif
#define LM_KERNEL(size, resident) extern "C" __global__ void __launch_bounds__(size, resident)
#define LM_GROUP ((lm_s64)blockIdx.x)
#define LM_THREAD ((int)threadIdx.x)
#define LM_BARRIER __syncthreads()

// Several elements per access, up to 16 bytes, if the data is aligned for it.
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) lm_vector {
  T element[N];
};
template <int N, typename T>
LM_FN void lm_load(T* to, const T* from) {
#if LM_ALIGNED
  const lm_vector<T, N> all = *reinterpret_cast<const lm_vector<T, N>*>(from);
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = all.element[i];
#else
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}
template <int N, typename T>
LM_FN void lm_store(T* to, const T* from) {
#if LM_ALIGNED
  lm_vector<T, N> all;
  LM_UNROLL for (int i = 0; i < N; ++i) all.element[i] = from[i];
  *reinterpret_cast<lm_vector<T, N>*>(to) = all;
#else
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}
#define LM_LOAD(count, to, from) lm_load<count>(to, from)
#define LM_STORE(count, to, from) lm_store<count>(to, from)

LM_FN lm_f32 lm_fma_f32(lm_f32 a, lm_f32 b, lm_f32 c) { return __fmaf_rn(a, b, c); }
LM_FN lm_f64 lm_fma_f64(lm_f64 a, lm_f64 b, lm_f64 c) { return __fma_rn(a, b, c); }
LM_FN lm_f32 lm_sqrt_f32(lm_f32 x) { return __fsqrt_rn(x); }
LM_FN lm_f64 lm_sqrt_f64(lm_f64 x) { return __dsqrt_rn(x); }
LM_FN lm_f32 lm_divide_f32(lm_f32 a, lm_f32 b) { return __fdiv_rn(a, b); }
LM_FN lm_f64 lm_divide_f64(lm_f64 a, lm_f64 b) { return __ddiv_rn(a, b); }
LM_FN lm_f32 lm_floor_f32(lm_f32 x) { return floorf(x); }
LM_FN lm_f64 lm_floor_f64(lm_f64 x) { return floor(x); }
LM_FN lm_u32 lm_bits_f32(lm_f32 x) { return __float_as_uint(x); }
LM_FN lm_f32 lm_real_f32(lm_u32 x) { return __uint_as_float(x); }
LM_FN lm_u64 lm_bits_f64(lm_f64 x) { return (lm_u64)__double_as_longlong(x); }
LM_FN lm_f64 lm_real_f64(lm_u64 x) { return __longlong_as_double((lm_s64)x); }

// Uses the device's conversions. NaN gets the dialect's code.
#define LM_HAS_F16
LM_FN lm_u16 lm_f16_from_f32(lm_f32 x) {
  lm_u16 code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return x != x ? (lm_u16)(((lm_bits_f32(x) & 0x80000000u) >> 16) | 0x7e00u) : code;
}
LM_FN lm_f32 lm_f32_from_f16(lm_u16 code) {
  lm_f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
  return x;
}
#define LM_HAS_BF16
LM_FN lm_u16 lm_bf16_from_f32(lm_f32 x) {
  lm_u16 code;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return x != x ? (lm_u16)(((lm_bits_f32(x) & 0x80000000u) >> 16) | 0x7fc0u) : code;
}

// Inside a warp by shuffles, between warps with one value per warp in shared memory. Teams of adjacent rows use shared memory
// only.
#define LM_DEFINE_FOLD(name, type, combine)                                                       \
  LM_FN type name(type x, type* shared, int t, int team, int first, int step) {                   \
    if (step == 1) {                                                                              \
      LM_UNROLL for (int distance = team < 32 ? team / 2 : 16; distance > 0; distance /= 2)       \
        x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));                                \
      if (team <= 32) return x;                                                                   \
      __syncthreads();                                                                            \
      if (t % 32 == 0) shared[(first + t) / 32] = x;                                              \
      __syncthreads();                                                                            \
      x = shared[first / 32 + t % 32 % (team / 32)];                                              \
      LM_UNROLL for (int distance = team / 64; distance > 0; distance /= 2)                       \
        x = combine(x, __shfl_xor_sync(0xffffffffu, x, distance));                                \
      return x;                                                                                   \
    }                                                                                             \
    for (int distance = lm_fold_start(team); distance > 0; distance = lm_fold_next(distance, team)) { \
      __syncthreads();                                                                            \
      shared[first + t * step] = x;                                                               \
      __syncthreads();                                                                            \
      x = combine(x, shared[first + (t ^ distance) * step]);                                      \
    }                                                                                             \
    return x;                                                                                     \
  }

