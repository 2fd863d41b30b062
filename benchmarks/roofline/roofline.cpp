// The machine's speed at moving the bytes of a case, which no kernel can exceed.
#include <omp.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "../contenders.h"
#include "backends/cpu/host/host.h"
#include "roofline_moves.h"

namespace bench {

namespace {

LAMINA_FOR_EACH_MACHINE void copy(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) s.out[i] = s.a[i];
}

LAMINA_FOR_EACH_MACHINE void triad(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) s.out[i] = s.a[i] ^ s.b[i];
}

LAMINA_FOR_EACH_MACHINE void two_to_two(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) {
    const Word both = s.a[i] ^ s.b[i];
    s.out[i] = both;
    s.second_out[i] = ~both;
  }
}

LAMINA_FOR_EACH_MACHINE void shrink(const Share& s) {
  for (size_t line = 0; line < s.lines; ++line) {
    const Word* const from = s.a + line * 64;
    for (size_t i = 0; i < 16; ++i) s.out[line * 16 + i] = from[i] ^ from[i + 16] ^ from[i + 32] ^ from[i + 48];
  }
}

// Only reads, of a or of both.
LAMINA_FOR_EACH_MACHINE void read(const Share& s) {
  Word all = 0;
  if (s.b != nullptr) {
    for (size_t i = 0; i < s.lines * 16; ++i) all ^= s.a[i] ^ s.b[i];
  } else if (s.a != nullptr) {
    for (size_t i = 0; i < s.lines * 16; ++i) all ^= s.a[i];
  }
  asm volatile("" : : "r"(all));  // keeps the reads
}

// Only writes.
LAMINA_FOR_EACH_MACHINE void fill(const Share& s) {
  for (Word* const to : {s.out, s.second_out}) {
    if (to == nullptr) continue;
    for (size_t i = 0; i < s.lines * 16; ++i) to[i] = 1;
  }
}

void copy_by_library(const Share& s) { std::memcpy(s.out, s.a, s.lines * 64); }

// This thread's part of `all`. A line of a has `in_words` words.
Share part_of(const Share& all, size_t in_words) {
  const auto threads = static_cast<size_t>(omp_get_num_threads());
  const auto thread = static_cast<size_t>(omp_get_thread_num());
  const size_t begin = all.lines * thread / threads, end = all.lines * (thread + 1) / threads;
  const auto from = [&](auto* tensor, size_t words) { return tensor == nullptr ? nullptr : tensor + begin * words; };
  return {from(all.a, in_words), from(all.b, in_words), from(all.out, 16), from(all.second_out, 16), end - begin};
}

// Each thread moves one contiguous part of each tensor. Up to three lines at the end are not moved. Small work stays on the
// calling thread, as a kernel's does.
void run_on_threads(const Way& way, const Share& big, size_t in_words, const Share& columns) {
  constexpr size_t kLinesWorthAThread = 256;
#pragma omp parallel if (big.lines >= 2 * kLinesWorthAThread)
  {
    way.move(part_of(big, in_words));
    const Share part = part_of(columns, 16);
    read(part);
    way.write(part);
  }
}

std::vector<Way> ways_for(Case which) {
  const CaseTraits& traits = traits_of(which);
  const auto with = [](std::vector<Way> ways, const std::vector<Way>& more) {
    ways.insert(ways.end(), more.begin(), more.end());
    return ways;
  };
  if (traits.to_s8) return with({{"shrink", shrink, fill}}, simd_ways(Moves::shrink));
  if (traits.writes == 2) return with({{"2 to 2", two_to_two, fill}}, simd_ways(Moves::two_to_two));
  if (traits.reads == 2) return with({{"triad", triad, fill}}, simd_ways(Moves::triad));
  return with({{"copy", copy, fill}, {"memcpy", copy_by_library, fill}}, simd_ways(Moves::copy));
}

}  // namespace

std::vector<Contender> roofline_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  const CaseTraits& traits = traits_of(which);
  if (traits.to_s8 && problem.type != Type::f32) throw std::logic_error("the roofline of a quantised case is made for f32");
  const size_t in_words = traits.to_s8 ? 64 : 16;
  const size_t lines = problem.count() * bytes_of(type_of_dst(which, problem)) / 64;
  const auto words = [](const Buffer& buffer) { return static_cast<Word*>(buffer.data()); };
  const auto words_if = [&](bool is_moved, const Buffer& buffer) { return is_moved ? words(buffer) : nullptr; };
  const Share big{words(inputs.src), words(inputs.other), words(outputs.big), words(outputs.sum), lines};
  const Share columns{words_if(traits.column_reads > 0, inputs.gamma), words_if(traits.column_reads > 1, inputs.beta),
                      words_if(traits.column_writes > 0, outputs.first_small),
                      words_if(traits.column_writes > 1, outputs.second_small), problem.column_bytes() / 64};
  std::vector<Contender> contenders;
  for (const Way& way : ways_for(which)) {
    contenders.push_back({way.name, [=] { run_on_threads(way, big, in_words, columns); }});
  }
  return contenders;
}

}  // namespace bench
