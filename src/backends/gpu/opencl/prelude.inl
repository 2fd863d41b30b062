// The dialect in OpenCL C 1.2.
#pragma OPENCL FP_CONTRACT OFF
#if LM_F64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
#endif

typedef float lm_f32;
typedef char lm_s8;
typedef uchar lm_u8;
typedef ushort lm_u16;
typedef int lm_s32;
typedef uint lm_u32;
typedef long lm_s64;
typedef ulong lm_u64;

#define LM_FN static
#define LM_GLOBAL global
#define LM_SHARED local
#define LM_UNROLL _Pragma("unroll")
#if LM_DISJOINT
#define LM_BUFFER global char* restrict
#else
#define LM_BUFFER global char*
#endif
#define LM_KERNEL(size, resident) __attribute__((reqd_work_group_size(size, 1, 1))) kernel void
#define LM_GROUP ((lm_s64)get_group_id(0))
#define LM_THREAD ((int)get_local_id(0))
#define LM_BARRIER barrier(CLK_LOCAL_MEM_FENCE)

// Vector loads and stores of OpenCL need only the alignment of an element.
#define LM_LOAD(count, to, from) vstore##count(vload##count(0, from), 0, to)
#define LM_STORE(count, to, from) vstore##count(vload##count(0, from), 0, to)

#define lm_fma_f32(a, b, c) fma(a, b, c)
#define lm_sqrt_f32(x) sqrt(x)
#define lm_floor_f32(x) floor(x)
#define lm_divide_f32(a, b) ((a) / (b))
#define lm_bits_f32(x) as_uint(x)
#define lm_real_f32(x) as_float(x)
#if LM_F64
typedef double lm_f64;
#define lm_fma_f64(a, b, c) fma(a, b, c)
#define lm_sqrt_f64(x) sqrt(x)
#define lm_floor_f64(x) floor(x)
#define lm_divide_f64(a, b) ((a) / (b))
#define lm_bits_f64(x) as_ulong(x)
#define lm_real_f64(x) as_double(x)
#endif

#define LM_DEFINE_FOLD(name, type, combine)                                                   \
  LM_FN type name(type x, local type* shared, int t, int team, int first, int step) {         \
    int distance;                                                                             \
    for (distance = lm_fold_start(team); distance > 0; distance = lm_fold_next(distance, team)) { \
      barrier(CLK_LOCAL_MEM_FENCE);                                                           \
      shared[first + t * step] = x;                                                           \
      barrier(CLK_LOCAL_MEM_FENCE);                                                           \
      x = combine(x, shared[first + (t ^ distance) * step]);                                  \
    }                                                                                         \
    return x;                                                                                 \
  }

