#include "backends/cache/sha256_blocks.h"

#include <bit>

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

namespace lamina {

namespace {

constexpr size_t kRounds = 64, kBlockBytes = 64;
constexpr std::array<uint32_t, kRounds> kRoundConstants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5, 0xd807aa98, 0x12835b01,
    0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174, 0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc,
    0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da, 0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147,
    0x06ca6351, 0x14292967, 0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070, 0x19a4c116, 0x1e376c08,
    0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3, 0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208,
    0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

#if defined(__x86_64__)

// "a" and "f" are at the high end, as in the instructions' description: one register has a, b, e, f, the other c, d, g, h.
__attribute__((target("sha,sse4.1,ssse3"))) void add_by_instructions(Sha256State& state, const uint8_t* blocks, size_t count) {
  constexpr int kSwapPairs = 0xB1, kReverse = 0x1B, kHighHalf = 0x0E, kUpperWords = 0xF0;
  const __m128i big_endian = _mm_set_epi64x(0x0C0D0E0F08090A0B, 0x0405060700010203);
  auto* const memory = reinterpret_cast<__m128i*>(state.data());
  const __m128i badc = _mm_shuffle_epi32(_mm_loadu_si128(memory), kSwapPairs);
  const __m128i hgfe = _mm_shuffle_epi32(_mm_loadu_si128(memory + 1), kReverse);
  __m128i abef = _mm_alignr_epi8(badc, hgfe, 8), cdgh = _mm_blend_epi16(hgfe, badc, kUpperWords);
  for (const uint8_t* block = blocks; block != blocks + count * kBlockBytes; block += kBlockBytes) {
    const __m128i abef_before = abef, cdgh_before = cdgh;
    __m128i words[4];  // of the message schedule: the next 16
    for (size_t i = 0; i < 4; ++i)
      words[i] = _mm_shuffle_epi8(_mm_loadu_si128(reinterpret_cast<const __m128i*>(block) + i), big_endian);
#pragma GCC unroll 16
    for (size_t i = 0; i < kRounds / 4; ++i) {
      __m128i& next = words[i % 4];
      const auto* const constants = reinterpret_cast<const __m128i*>(kRoundConstants.data() + 4 * i);
      const __m128i added = _mm_add_epi32(next, _mm_loadu_si128(constants));
      cdgh = _mm_sha256rnds2_epu32(cdgh, abef, added);
      abef = _mm_sha256rnds2_epu32(abef, cdgh, _mm_shuffle_epi32(added, kHighHalf));
      if (i >= kRounds / 4 - 4) continue;
      const __m128i third = words[(i + 2) % 4], last = words[(i + 3) % 4];
      const __m128i sums = _mm_add_epi32(_mm_sha256msg1_epu32(next, words[(i + 1) % 4]), _mm_alignr_epi8(last, third, 4));
      next = _mm_sha256msg2_epu32(sums, last);
    }
    abef = _mm_add_epi32(abef, abef_before);
    cdgh = _mm_add_epi32(cdgh, cdgh_before);
  }
  const __m128i feba = _mm_shuffle_epi32(abef, kReverse), ghcd = _mm_shuffle_epi32(cdgh, kSwapPairs);
  _mm_storeu_si128(memory, _mm_blend_epi16(feba, ghcd, kUpperWords));
  _mm_storeu_si128(memory + 1, _mm_alignr_epi8(ghcd, feba, 8));
}

bool has_instructions() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kSha = 1U << 29;  // in EBX of leaf 7
  return __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("ssse3") && __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 &&
         (b & kSha) != 0;
}

#endif

}  // namespace

void add_sha256_blocks_portably(Sha256State& state, const uint8_t* blocks, size_t count) {
  for (const uint8_t* block = blocks; block != blocks + count * kBlockBytes; block += kBlockBytes) {
    std::array<uint32_t, kRounds> w;
    for (size_t i = 0; i < 16; ++i)
      w[i] =
          uint32_t{block[4 * i]} << 24 | uint32_t{block[4 * i + 1]} << 16 | uint32_t{block[4 * i + 2]} << 8 | block[4 * i + 3];
    for (size_t i = 16; i < kRounds; ++i) {
      const uint32_t first = std::rotr(w[i - 15], 7) ^ std::rotr(w[i - 15], 18) ^ w[i - 15] >> 3;
      const uint32_t second = std::rotr(w[i - 2], 17) ^ std::rotr(w[i - 2], 19) ^ w[i - 2] >> 10;
      w[i] = w[i - 16] + first + w[i - 7] + second;
    }
    auto [a, b, c, d, e, f, g, h] = state;
    for (size_t i = 0; i < kRounds; ++i) {
      const uint32_t choice = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
      const uint32_t first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) + choice + kRoundConstants[i] + w[i];
      const uint32_t second = (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + majority;
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    const Sha256State added = {a, b, c, d, e, f, g, h};
    for (size_t i = 0; i < state.size(); ++i) state[i] += added[i];
  }
}

void add_sha256_blocks(Sha256State& state, const uint8_t* blocks, size_t count) {
#if defined(__x86_64__)
  static const bool is_fast = has_instructions();
  if (is_fast) return add_by_instructions(state, blocks, count);
#endif
  add_sha256_blocks_portably(state, blocks, count);
}

}  // namespace lamina
