#include "fma_loops.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

#if defined(__x86_64__)

namespace {

constexpr int kChains = 16;  // more than the latency of an instruction needs

[[gnu::target("avx2,fma")]] float run_256(long count) {
  __m256 sums[kChains], factor = _mm256_set1_ps(0.5F);
  for (__m256& sum : sums) sum = factor;
  for (long i = 0; i < count; ++i) {
#pragma GCC unroll 16
    for (__m256& sum : sums) sum = _mm256_fmadd_ps(sum, factor, factor);
  }
  float result = 0;
  for (const __m256& sum : sums) result += sum[0];
  return result;
}

[[gnu::target("avx512f")]] float run_512(long count) {
  __m512 sums[kChains], factor = _mm512_set1_ps(0.5F);
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
  if (__builtin_cpu_supports("fma")) loops.push_back({8 * kChains, run_256});
  if (__builtin_cpu_supports("avx512f")) loops.push_back({16 * kChains, run_512});
  return loops;
}

#else

std::vector<FmaLoop> fma_loops() { return {}; }

#endif

}  // namespace bench
