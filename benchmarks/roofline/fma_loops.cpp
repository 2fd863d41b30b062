#include "fma_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

#if defined(__x86_64__)

namespace {

// More sums than the latency of an instruction needs; with the factor they fit the registers: 16 of 256 bits, 32 of 512.
constexpr int kSums256 = 12, kSums512 = 16;

[[gnu::target("avx2,fma")]] float run_256(long count) {
  __m256 sums[kSums256], factor = _mm256_set1_ps(0.5F);
  for (__m256& sum : sums) sum = factor;
  for (long i = 0; i < count; ++i) {
#pragma GCC unroll 12
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  float result = 0;
  for (const __m256& sum : sums) result += sum[0];
  return result;
}

[[gnu::target("avx512f")]] float run_512(long count) {
  __m512 sums[kSums512], factor = _mm512_set1_ps(0.5F);
  for (__m512& sum : sums) sum = factor;
  for (long i = 0; i < count; ++i) {
#pragma GCC unroll 16
    for (__m512& sum : sums) sum = _mm512_fmadd_ps(sum, factor, factor);
  }
  float result = 0;
  for (const __m512& sum : sums) result += sum[0];
  return result;
}

}  // namespace

std::vector<FmaLoop> fma_loops() {
  std::vector<FmaLoop> loops;
  if (__builtin_cpu_supports("fma")) loops.push_back({8 * kSums256, run_256});
  if (__builtin_cpu_supports("avx512f")) loops.push_back({16 * kSums512, run_512});
  return loops;
}

#else

std::vector<FmaLoop> fma_loops() { return {}; }

#endif

}  // namespace bench
