// CUDA C++, compiled by NVRTC without headers.
#include "backends/gpu/languages/language.h"

namespace lamina::gpu {

const Language languages::cuda{
    .name = "CUDA C++",
    .file_ending = ".cu",
    .start = "#pragma nv_diag_suppress 177  // a program contains functions that its kernel may not need\n",
    .function = "static __device__ __forceinline__",
    .kernel = "extern \"C\" __global__ void __launch_bounds__(size, resident)",
    .global = "",
    .shared = "",
    .shared_variable = "__shared__",
    .restrict_word = "__restrict__",
    .s8 = "signed char",
    .s64 = "long long",
    .group = "blockIdx.x",
    .thread = "threadIdx.x",
    .barrier = "__syncthreads()",
    .shuffle = "__shfl_xor_sync(0xffffffffu, x, distance)",
    .f32 = {.fma = "__fmaf_rn(a, b, c)",
            .divide = "__fdiv_rn(a, b)",
            .square_root = "__fsqrt_rn(x)",
            .bits = "__float_as_uint(x)",
            .real = "__uint_as_float(x)"},
    .f64 = {.fma = "__fma_rn(a, b, c)",
            .divide = "__ddiv_rn(a, b)",
            .square_root = "__dsqrt_rn(x)",
            .bits = "__double_as_longlong(x)",
            .real = "__longlong_as_double(x)"},
    .conversions = R"(
#define lm_f16_from_f32 lm_f16_from_f32
LM_FN lm_u16 lm_f16_from_f32(lm_f32 x) {
  lm_u16 code;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return x != x ? (lm_u16)(((lm_bits_f32(x) & 0x80000000u) >> 16) | 0x7e00u) : code;
}
#define lm_f32_from_f16 lm_f32_from_f16
LM_FN lm_f32 lm_f32_from_f16(lm_u16 code) {
  lm_f32 x;
  asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(code));
  return x;
}
#define lm_bf16_from_f32 lm_bf16_from_f32
LM_FN lm_u16 lm_bf16_from_f32(lm_f32 x) {
  lm_u16 code;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(code) : "f"(x));
  return x != x ? (lm_u16)(((lm_bits_f32(x) & 0x80000000u) >> 16) | 0x7fc0u) : code;
}
)"};

}  // namespace lamina::gpu
