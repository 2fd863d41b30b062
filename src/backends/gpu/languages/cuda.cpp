// CUDA C++, compiled by NVRTC without headers.
#include "backends/gpu/languages/language.h"

namespace lamina::gpu {

namespace {

// wgmma of compute capability 9.0. A descriptor of a factor has the address in local memory, and the distances to the next
// panel of 64 rows or columns (8192 bytes) and to the next eight lines (1024), all over 16, and the swizzle of 128 bytes. It is
// scaled by 1, and "transposed" if its lines are not along the terms.
std::string instructions_of_four_warps(int columns, const std::string& type, bool left_along_terms, bool right_along_terms) {
  const int sums = columns / 2;
  const auto operand = [](int number) { return "%" + std::to_string(number); };
  std::string registers, operands;
  for (int i = 0; i < sums; ++i) {
    const char* const comma = i == 0 ? "" : ", ";
    registers += comma + operand(i);
    operands += comma + ("\"+f\"(sum[" + std::to_string(i)) + "])";
  }
  const std::string instruction =
      "wgmma.mma_async.sync.aligned.m64n" + std::to_string(columns) + "k16.f32." + type + "." + type;
  const char *const left_is_transposed = left_along_terms ? "0" : "1", *const right_is_transposed =
                                                                           right_along_terms ? "0" : "1";
  return R"(
LM_FN void lm_show_copies() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
LM_FN void lm_start_products() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
LM_FN void lm_end_products() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
#define LM_WAIT_FOR_PRODUCTS(pending) asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(pending) : "memory")
LM_FN lm_u64 lm_factor(const lm_u16* at) {
  return (lm_u64)((lm_local_address(at) & 0x3ffff) >> 4) | (lm_u64)512 << 16 | (lm_u64)64 << 32 | (lm_u64)1 << 62;
}
LM_FN void lm_multiply_by_four_warps(lm_f32* sum, const lm_u16* left, const lm_u16* right) {
  asm volatile("{.reg .pred p; setp.ne.b32 p, 1, 0; )" +
         instruction + " {" + registers + "}, " + operand(sums) + ", " + operand(sums + 1) + ", p, 1, 1, " +
         left_is_transposed + ", " + right_is_transposed + ";}\" : " + operands +
         " : \"l\"(lm_factor(left)), \"l\"(lm_factor(right)));\n}\n";
}

}  // namespace

// In both texts that copy; a macro, because literals are joined.
#define LAMINA_GROUPS_OF_COPIES                                                                 \
  "\nLM_FN void lm_end_copies() { asm volatile(\"cp.async.commit_group;\" ::: \"memory\"); }\n" \
  "#define LM_WAIT_FOR_COPIES(pending) asm volatile(\"cp.async.wait_group %0;\" ::\"n\"(pending) : \"memory\")"

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
)",
    .clusters = R"(
#define LM_CLUSTER(groups) __cluster_dims__(groups, 1, 1)
LM_FN lm_u32 lm_address(const void* at) { return (lm_u32)__cvta_generic_to_shared(at); }
LM_FN lm_u32 lm_address_in_group(const void* at, int rank) {
  lm_u32 address;
  asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(address) : "r"(lm_address(at)), "r"(rank));
  return address;
}
LM_FN void lm_start_cluster(lm_u64* arrivals, bool is_first) {
  if (is_first) {
    for (int i = 0; i < 2; ++i) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(lm_address(arrivals + i)) : "memory");
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
  }
  __syncthreads();
  asm volatile("barrier.cluster.arrive.relaxed.aligned;\n barrier.cluster.wait.acquire.aligned;" ::: "memory");
}
LM_FN void lm_expect_bytes(lm_u64* arrival, int bytes) {
  asm volatile("mbarrier.arrive.expect_tx.shared.b64 _, [%0], %1;" ::"r"(lm_address(arrival)), "r"(bytes) : "memory");
}
LM_FN void lm_wait_for_bytes(lm_u64* arrival, int parity) {
  lm_u32 is_complete = 0;
  while (!is_complete)
    asm volatile("{.reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p;}"
                 : "=r"(is_complete) : "r"(lm_address(arrival)), "r"(parity) : "memory");
}
LM_FN void lm_send_f32(void* to, lm_f32 x, lm_u64* arrival, int rank) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b32 [%0], %1, [%2];"
               ::"r"(lm_address_in_group(to, rank)), "r"(lm_bits_f32(x)), "r"(lm_address_in_group(arrival, rank)) : "memory");
}
#if LM_F64
LM_FN void lm_send_f64(void* to, lm_f64 x, lm_u64* arrival, int rank) {
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.b64 [%0], %1, [%2];"
               ::"r"(lm_address_in_group(to, rank)), "l"(lm_bits_f64(x)), "r"(lm_address_in_group(arrival, rank)) : "memory");
}
#endif
)",
    .copies_ahead = LAMINA_GROUPS_OF_COPIES R"(
#define LM_COPIED_ROWS(bytes) extern __shared__ __attribute__((aligned(16))) char copied[]
#define LM_COPY_AHEAD(count, to, from) lm_copy_ahead<count>(to, from)
template <int N, typename T>
LM_FN void lm_copy_ahead(T* to, const T* from) {
#if LM_ALIGNED
  LM_UNROLL for (int i = 0; i < N; i += 16 / sizeof(T))
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"((lm_u32)__cvta_generic_to_shared(to + i)), "l"(from + i)
                 : "memory");
#else
  LM_UNROLL for (int i = 0; i < N; ++i) to[i] = from[i];
#endif
}
)",
    .matrix_instructions = LAMINA_GROUPS_OF_COPIES R"(
#define LM_MATRIX_MEMORY(bytes, threads) extern __shared__ __attribute__((aligned(1024))) lm_u16 lm_memory[]
#define LM_WARP __shfl_sync(0xffffffffu, (int)threadIdx.x / 32, 0)
LM_FN lm_u32 lm_local_address(const lm_u16* at) { return (lm_u32)__cvta_generic_to_shared(at); }
LM_FN void lm_copy_chunk(lm_u16* to, const lm_u16* from, int count) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(lm_local_address(to)), "l"(from), "r"(count * 2) : "memory");
}
LM_FN void lm_load_matrices(lm_u32* to, const lm_u16* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(lm_local_address(line)) : "memory");
}
LM_FN void lm_load_matrices_transposed(lm_u32* to, const lm_u16* line) {
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3]) : "r"(lm_local_address(line)) : "memory");
}
#define LM_MULTIPLY(type)                                                                                              \
  LM_FN void lm_multiply_##type(lm_f32* sum, const lm_u32* left, const lm_u32* right) {                                \
    asm("mma.sync.aligned.m16n8k16.row.col.f32." #type "." #type ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, " \
        "{%0, %1, %2, %3};"                                                                                            \
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])                                                       \
        : "r"(left[0]), "r"(left[1]), "r"(left[2]), "r"(left[3]), "r"(right[0]), "r"(right[1]));                       \
  }
LM_MULTIPLY(bf16)
LM_MULTIPLY(f16)
)",
    .instructions_of_four_warps = instructions_of_four_warps};

}  // namespace lamina::gpu
