#include <immintrin.h>
#include <omp.h>

#include "contenders.h"

namespace bench {

namespace {

// Multiples of 16 floats (one cache line); the last, smaller part is left out: less than a line.
using Move = void (*)(const float* a, const float* b, float* out, size_t floats);

__attribute__((target_clones("avx512f", "avx2", "default"))) void copy(const float* a, const float*, float* out,
                                                                       size_t floats) {
  for (size_t i = 0; i < floats; ++i) out[i] = a[i];
}

__attribute__((target_clones("avx512f", "avx2", "default"))) void triad(const float* a, const float* b, float* out,
                                                                        size_t floats) {
  for (size_t i = 0; i < floats; ++i) out[i] = a[i] + 0.5f * b[i];
}

__attribute__((target("avx"))) void copy_streaming(const float* a, const float*, float* out, size_t floats) {
  for (size_t i = 0; i < floats; i += 8) _mm256_stream_ps(out + i, _mm256_loadu_ps(a + i));
  _mm_sfence();
}

__attribute__((target("avx"))) void triad_streaming(const float* a, const float* b, float* out, size_t floats) {
  const __m256 half = _mm256_set1_ps(0.5f);
  for (size_t i = 0; i < floats; i += 8) {
    _mm256_stream_ps(out + i, _mm256_add_ps(_mm256_loadu_ps(a + i), _mm256_mul_ps(half, _mm256_loadu_ps(b + i))));
  }
  _mm_sfence();
}

// Each thread moves one contiguous share.
void run_on_all_threads(Move move, const float* a, const float* b, float* out, size_t floats) {
#pragma omp parallel
  {
    const auto threads = static_cast<size_t>(omp_get_num_threads());
    const auto thread = static_cast<size_t>(omp_get_thread_num());
    const size_t lines = floats / 16;
    const size_t begin = lines * thread / threads * 16, end = lines * (thread + 1) / threads * 16;
    move(a + begin, b + begin, out + begin, end - begin);
  }
}

}  // namespace

std::vector<Contender> roof_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  const bool two_reads = big_reads(which) == 2;
  const auto contender = [&](const char* name, Move move) {
    return Contender{name, [=, a = inputs.src.floats(), b = inputs.other.floats(), out = outputs.big.floats(),
                            floats = problem.bytes() / 4] { run_on_all_threads(move, a, b, out, floats); }};
  };
  std::vector<Contender> roof = {contender(two_reads ? "triad" : "copy", two_reads ? &triad : &copy)};
  if (__builtin_cpu_supports("avx")) {
    roof.push_back(
        contender(two_reads ? "triad, streaming" : "copy, streaming", two_reads ? &triad_streaming : &copy_streaming));
  }
  return roof;
}

}  // namespace bench
