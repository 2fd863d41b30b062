// OpenCL C 1.2. Every function is inlined: if one that is not uses a kernel's local array, PoCL makes the array static, and
// all work-groups share it.
#include "backends/gpu/languages/language.h"

namespace lamina::gpu {

const Language languages::opencl{
    .name = "OpenCL C",
    .file_ending = ".cl",
    .start =
        "#pragma OPENCL FP_CONTRACT OFF\n"
        "#if LM_F64\n"
        "#pragma OPENCL EXTENSION cl_khr_fp64 : enable\n"
        "#endif\n",
    .function = "static inline __attribute__((always_inline))",
    .kernel = "__attribute__((reqd_work_group_size(size, 1, 1))) kernel void",
    .global = "global",
    .shared = "local",
    .shared_variable = "local",
    .restrict_word = "restrict",
    .s8 = "char",
    .s64 = "long",
    .group = "get_group_id(0)",
    .thread = "get_local_id(0)",
    .barrier = "barrier(CLK_LOCAL_MEM_FENCE)",
    .shuffle = "",
    .f32 = {.fma = "fma(a, b, c)", .divide = "a / b", .square_root = "sqrt(x)", .bits = "as_uint(x)", .real = "as_float(x)"},
    .f64 = {.fma = "fma(a, b, c)", .divide = "a / b", .square_root = "sqrt(x)", .bits = "as_ulong(x)", .real = "as_double(x)"},
    .conversions = "",
    .clusters = "",
    .copies_ahead = "",
    .matrix_instructions = "",
    .instructions_of_four_warps = nullptr};

}  // namespace lamina::gpu
