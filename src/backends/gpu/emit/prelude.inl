// The dialect on the words of a language (languages/language.h).
#define LM_UNROLL _Pragma("unroll")
#define LM_UNROLL_BY_4 _Pragma("unroll 4")
#define LM_UNROLL_BY_8 _Pragma("unroll 8")
#define LM_UNROLL_BY_16 _Pragma("unroll 16")
#define LM_ROLLED _Pragma("unroll 1")
#if LM_DISJOINT
#define LM_BUFFER LM_GLOBAL char* LM_RESTRICT
#else
#define LM_BUFFER LM_GLOBAL char*
#endif

typedef float lm_f32;
typedef LM_S8 lm_s8;
typedef unsigned char lm_u8;
typedef short lm_s16;
typedef unsigned short lm_u16;
typedef int lm_s32;
typedef unsigned int lm_u32;
typedef LM_S64 lm_s64;
typedef unsigned LM_S64 lm_u64;

LM_FN lm_f32 lm_fma_f32(lm_f32 a, lm_f32 b, lm_f32 c) { return LM_FMA_F32; }
LM_FN lm_f32 lm_divide_f32(lm_f32 a, lm_f32 b) { return LM_DIVIDE_F32; }
LM_FN lm_f32 lm_sqrt_f32(lm_f32 x) { return LM_SQRT_F32; }
LM_FN lm_u32 lm_bits_f32(lm_f32 x) { return LM_BITS_F32; }
LM_FN lm_f32 lm_real_f32(lm_u32 x) { return LM_REAL_F32; }
#if LM_F64
typedef double lm_f64;
LM_FN lm_f64 lm_fma_f64(lm_f64 a, lm_f64 b, lm_f64 c) { return LM_FMA_F64; }
LM_FN lm_f64 lm_divide_f64(lm_f64 a, lm_f64 b) { return LM_DIVIDE_F64; }
LM_FN lm_f64 lm_sqrt_f64(lm_f64 x) { return LM_SQRT_F64; }
LM_FN lm_u64 lm_bits_f64(lm_f64 x) { return (lm_u64)LM_BITS_F64; }
LM_FN lm_f64 lm_real_f64(lm_u64 x) { return LM_REAL_F64; }
#endif

// Element `index` of the byte that it shares with its neighbour. The element with the even index is in the lower half.
LM_FN lm_f32 lm_f32_from_u4(lm_u8 both, lm_s64 index) { return (lm_f32)((both >> (int)((index & 1) * 4)) & 15); }
LM_FN lm_f32 lm_f32_from_s4(lm_u8 both, lm_s64 index) { return (lm_f32)((((both >> (int)((index & 1) * 4)) & 15) ^ 8) - 8); }

// Several elements per access. Vector loads and stores of OpenCL need only the alignment of an element; in C++, an access has up
// to 16 bytes if the data is aligned for it. A chunk is eight elements of 16 bits that begin at a multiple of 16 bytes in memory.
#ifdef __cplusplus
template <typename T, int N>
struct alignas(sizeof(T) * N < 16 ? sizeof(T) * N : 16) lm_vector {
  T element[N];
};
template <int N, typename T>
LM_FN void lm_load_whole(T* to, const T* from) {
  const lm_vector<T, N> all = *reinterpret_cast<const lm_vector<T, N>*>(from);
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = all.element[i];
}
template <int N, typename T>
LM_FN void lm_store_whole(T* to, const T* from) {
  lm_vector<T, N> all;
  LM_UNROLL for (int i = 0; i < N; ++i) all.element[i] = from[i];
  *reinterpret_cast<lm_vector<T, N>*>(to) = all;
}
template <int N, typename T>
LM_FN void lm_load(T* to, const T* from) {
#if LM_ALIGNED
  lm_load_whole<N>(to, from);
#else
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}
template <int N, typename T>
LM_FN void lm_store(T* to, const T* from) {
#if LM_ALIGNED
  lm_store_whole<N>(to, from);
#else
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}
#define LM_LOAD(count, to, from) lm_load<count>(to, from)
#define LM_STORE(count, to, from) lm_store<count>(to, from)
#define LM_LOAD_CHUNK(to, from) lm_load_whole<8>(to, from)
#define LM_STORE_CHUNK(to, from) lm_store_whole<8>(to, from)
#else
#define LM_LOAD(count, to, from) vstore##count(vload##count(0, from), 0, to)
#define LM_STORE(count, to, from) vstore##count(vload##count(0, from), 0, to)
#define LM_LOAD_CHUNK(to, from) LM_LOAD(8, to, from)
#define LM_STORE_CHUNK(to, from) LM_STORE(8, to, from)
#endif
