// This and fma_loops.cpp are the only files of the benchmarks that name instruction sets.
#include "backends/cpu/host/host.h"
#include "roofline_moves.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace bench {

namespace {

enum class Stores { ordinary, streaming };
enum class Reads { plain, to_first, to_second };

// Prefetch distances in words. The hardware prefetchers stop at the end of a page.
constexpr size_t kAheadToFirst = 4096 / sizeof(Word), kAheadToSecond = 16384 / sizeof(Word);

template <Reads reads>
inline void prefetch(const Word* from) {
  if constexpr (reads == Reads::to_first) __builtin_prefetch(from + kAheadToFirst, 0, 3);
  if constexpr (reads == Reads::to_second) __builtin_prefetch(from + kAheadToSecond, 0, 2);
}

template <Stores stores>
inline void drain() {
  if constexpr (stores == Stores::streaming) lamina::cpu::host::drain_stores();
}

#if defined(__x86_64__)

namespace lines {
using Vector = Word __attribute__((vector_size(64)));
#define LAMINA_VECTOR_BYTES 64
#define LAMINA_VECTOR_TARGET [[gnu::target("avx512f")]]
LAMINA_VECTOR_TARGET inline void stream(Word* to, Vector line) {
  _mm512_stream_si512(reinterpret_cast<__m512i*>(to), reinterpret_cast<__m512i>(line));
}
#include "roofline_simd.inl"
}  // namespace lines

namespace halves {
using Vector = Word __attribute__((vector_size(32)));
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_VECTOR_TARGET [[gnu::target("avx")]]
LAMINA_VECTOR_TARGET inline void stream(Word* to, Vector half) {
  _mm256_stream_si256(reinterpret_cast<__m256i*>(to), reinterpret_cast<__m256i>(half));
}
#include "roofline_simd.inl"
}  // namespace halves

#elif defined(__aarch64__)

namespace pairs {  // pairs of registers, which one instruction stores
using Vector = Word __attribute__((vector_size(32)));
#define LAMINA_VECTOR_BYTES 32
#define LAMINA_VECTOR_TARGET
inline void stream(Word* to, Vector pair) {
  using Half = Word __attribute__((vector_size(16)));
  const Half low = __builtin_shufflevector(pair, pair, 0, 1, 2, 3), high = __builtin_shufflevector(pair, pair, 4, 5, 6, 7);
  asm volatile("stnp %q1, %q2, [%0]" : : "r"(to), "w"(low), "w"(high) : "memory");
}
#include "roofline_simd.inl"
}  // namespace pairs

#endif

}  // namespace

std::vector<Way> simd_ways([[maybe_unused]] Moves move) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return lines::ways(move);
  if (__builtin_cpu_supports("avx")) return halves::ways(move);
#elif defined(__aarch64__)
  return pairs::ways(move);
#endif
  return {};
}

const char* widest_vectors() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f")) return "AVX-512";
  return __builtin_cpu_supports("avx2") ? "AVX2" : "SSE2";
#elif defined(__aarch64__)
  return "NEON or SVE";
#else
  return "unknown";
#endif
}

}  // namespace bench
