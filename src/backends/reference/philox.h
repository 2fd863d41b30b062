// The random numbers of Dropout: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).
//
// Element i (the row-major position in the logical tensor, independent of strides) draws one 32-bit word. Four neighbours
// share one call of the generator:
//
//     counter = { low 32 bits of offset, high 32 bits of offset, low 32 bits of b, high 32 bits of b },   b = i with its two
//     key     = { low 32 bits of seed, high 32 bits of seed }                                             lowest bits cleared
//     word    = result[i mod 4]
//
// b counts elements, not groups: its values are 0, 4, 8, ... seed and offset are s64, reinterpreted as unsigned. An element
// is kept if
//
//     word > (2^32 - 1) * p,      the product in double, p (f32) clamped to [0, 1]; as integers: word > floor((2^32 - 1) * p)
//
// and a kept element is multiplied by 1 / (1 - p), or by 0 for p = 1. So p = 0 drops a word of 0 (one element in 2^32), and p
// = 1 drops everything. oneDNN (3.11 and later) draws the same words for every offset except 0. At offset 0 it uses an older
// generator, whose key is only the low half of the seed; lamina does not reproduce that.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

namespace lamina::reference {

using PhiloxCounter = std::array<uint32_t, 4>;
using PhiloxKey = std::array<uint32_t, 2>;

inline uint32_t low_half(uint64_t value) { return static_cast<uint32_t>(value); }
inline uint32_t high_half(uint64_t value) { return static_cast<uint32_t>(value >> 32); }

// Ten rounds. After each, the key is incremented by the golden ratio and by sqrt(3) - 1, both as fractions of 2^32.
inline PhiloxCounter philox4x32_10(PhiloxCounter counter, PhiloxKey key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {high_half(b) ^ counter[1] ^ key[0], low_half(b), high_half(a) ^ counter[3] ^ key[1], low_half(a)};
    key = {key[0] + 0x9E3779B9U, key[1] + 0xBB67AE85U};
  }
  return counter;
}

// The word that element `index` draws.
inline uint32_t dropout_word(int64_t index, int64_t seed, int64_t offset) {
  const auto i = static_cast<uint64_t>(index), s = static_cast<uint64_t>(seed), o = static_cast<uint64_t>(offset);
  const uint64_t block = i & ~uint64_t{3};
  const PhiloxCounter counter{low_half(o), high_half(o), low_half(block), high_half(block)};
  return philox4x32_10(counter, {low_half(s), high_half(s)})[i & 3];
}

inline bool dropout_keeps(int64_t index, int64_t seed, int64_t offset, float probability) {
  const double p = std::clamp(static_cast<double>(probability), 0.0, 1.0);
  return static_cast<double>(dropout_word(index, seed, offset)) > 4294967295.0 * p;
}

}  // namespace lamina::reference
