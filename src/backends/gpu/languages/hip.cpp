// HIP, compiled by hipRTC. The second parameter of __launch_bounds__ has another meaning than in CUDA, so it is left out. Warps
// have 32 threads as in CUDA: on devices with 64, a shuffle stays inside its half.
#include "backends/gpu/languages/language.h"

namespace lamina::gpu {

const Language languages::hip{.name = "HIP",
                              .file_ending = ".hip",
                              .start = "",
                              .function = "static __device__ __forceinline__",
                              .kernel = "extern \"C\" __global__ void __launch_bounds__(size)",
                              .global = "",
                              .shared = "",
                              .shared_variable = "__shared__",
                              .restrict_word = "__restrict__",
                              .s8 = "signed char",
                              .s64 = "long long",
                              .group = "blockIdx.x",
                              .thread = "threadIdx.x",
                              .barrier = "__syncthreads()",
                              .shuffle = "__shfl_xor(x, distance, 32)",
                              .f32 = {.fma = "__builtin_fmaf(a, b, c)",
                                      .divide = "a / b",
                                      .square_root = "__builtin_sqrtf(x)",
                                      .bits = "__builtin_bit_cast(lm_u32, x)",
                                      .real = "__builtin_bit_cast(lm_f32, x)"},
                              .f64 = {.fma = "__builtin_fma(a, b, c)",
                                      .divide = "a / b",
                                      .square_root = "__builtin_sqrt(x)",
                                      .bits = "__builtin_bit_cast(lm_u64, x)",
                                      .real = "__builtin_bit_cast(lm_f64, x)"},
                              .conversions = "",
                              .clusters = "",
                              .copies_ahead = "",
                              .matrix_instructions = "",
                              .instructions_of_four_warps = nullptr};

}  // namespace lamina::gpu
