// Ways to move the bytes of a case without computing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// The part of a thread: `lines` cache lines (16 words) of each output, from as many of each input (shrink: from four times as
// many of a). Words are joined by xor, because the halves of f64 would be slow as floats if they are subnormal. Pointers that
// a move does not use are null.
using Word = uint32_t;
struct Share {
  const Word *a, *b;
  Word *out, *second_out;
  size_t lines;
};
using Move = void (*)(const Share&);

// One way to move all bytes of a case.
struct Way {
  std::string name;
  Move move;   // of the big tensors; gamma and beta are read after them
  Move write;  // of the column sums
};

enum class Moves { copy, triad, two_to_two, shrink };

// Moves for this machine's widest registers: whole or partial lines, with ordinary and with non-temporal stores, without
// prefetches, with prefetches into the first-level cache, or further ahead into the second. lamina's kernels choose among
// these. Empty if the machine has no such registers.
std::vector<Way> simd_ways(Moves move);

// The widest vectors that this machine supports: "AVX-512".
const char* widest_vectors();

}  // namespace bench
