// Random words: Philox4x32-10 (Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, 2011), with the
// words of backends/reference/philox.h, which defines the counter and key of an element. All arithmetic is in integers of 64
// bits, whose low halves contain the words; the high halves are undefined. A product of two words yields the next round's words
// in its two halves, so nothing is converted.
#pragma once

#include "kernels/math/lanes.h"

namespace lamina::kernel::math {

inline constexpr int kPhiloxRounds = 10;

// Four words of the counter and two of the key.
template <typename L>
using PhiloxState = std::array<Bits<L>, 6>;

// `block`: the element's index without its two lowest bits, so that four neighbours share a block. Seed and offset may be
// scalars.
template <typename L>
PhiloxState<L> philox_start(const Bits<L>& block, const Bits<L>& seed, const Bits<L>& offset) {
  return {broadcast(offset, block), broadcast(offset >> 32, block), block, block >> 32, seed, seed >> 32};
}

template <typename L>
PhiloxState<L> philox_round(const PhiloxState<L>& s) {
  const Bits<L> x = word_product(s[0], 0xD2511F53), y = word_product(s[2], 0xCD9E8D57);
  return {
      (y >> 32) ^ s[1] ^ broadcast(s[4], y), y, (x >> 32) ^ s[3] ^ broadcast(s[5], x), x, s[4] + 0x9E3779B9, s[5] + 0xBB67AE85};
}

template <typename L>
PhiloxState<L> philox_words(const PhiloxState<L>& start) {
  return repeat(kPhiloxRounds, start, [](const auto&, const PhiloxState<L>& state) { return philox_round(state); });
}

// The word of element `index` of its block.
template <typename L>
Bits<L> philox_word_of(const PhiloxState<L>& words, const Bits<L>& index) {
  const Mask<L> is_even = is_zero(index & 1);
  const Bits<L> lower = select(is_even, words[0], words[1]), upper = select(is_even, words[2], words[3]);
  return select(is_zero(index & 2), lower, upper) & 0xffffffff;
}

}  // namespace lamina::kernel::math
