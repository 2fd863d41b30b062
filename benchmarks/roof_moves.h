// How the bytes of a case can be moved, without computing anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace bench {

// What a thread moves: `lines` cache lines (16 words) of each output, from as many of each input (shrink: from four times as
// many of a). Words, joined by xor, since the halves of f64 would be slow as floats where they happen to be subnormal. What a
// move does not use is null.
using Word = uint32_t;
struct Share {
  const Word *a, *b;
  Word *out, *second_out;
  size_t lines;
};
using Move = void (*)(const Share&);

// One way to do all of it.
struct Way {
  std::string name;
  Move move;   // of the big tensors; gamma and beta are read after them
  Move write;  // of the column sums
};

enum class Moves { copy, triad, two_to_two, shrink };

// A move written out with this machine's widest registers: whole lines or parts of them, with ordinary and with non-temporal
// stores, without and with asking ahead for what is read, into the first-level cache or, further ahead, into the second. These
// are what lamina's kernels choose among. None where there are no such registers.
std::vector<Way> written_ways(Moves move);

// The widest vectors that this machine computes with: "AVX-512".
const char* widest_vectors();

}  // namespace bench
