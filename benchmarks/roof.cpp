// The machine's own speed at moving the bytes of a case: what no kernel can beat.
#include <immintrin.h>
#include <omp.h>

#include <cstring>
#include <stdexcept>
#include <string>
#include <vector>

#include "contenders.h"

namespace bench {

namespace {

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

#define LAMINA_FOR_THIS_CPU __attribute__((target_clones("avx512f", "avx2", "default")))

LAMINA_FOR_THIS_CPU void copy(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) s.out[i] = s.a[i];
}

LAMINA_FOR_THIS_CPU void triad(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) s.out[i] = s.a[i] ^ s.b[i];
}

LAMINA_FOR_THIS_CPU void two_to_two(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; ++i) {
    const Word both = s.a[i] ^ s.b[i];
    s.out[i] = both;
    s.second_out[i] = ~both;
  }
}

LAMINA_FOR_THIS_CPU void shrink(const Share& s) {
  for (size_t line = 0; line < s.lines; ++line) {
    const Word* const from = s.a + line * 64;
    for (size_t i = 0; i < 16; ++i) s.out[line * 16 + i] = from[i] ^ from[i + 16] ^ from[i + 32] ^ from[i + 48];
  }
}

// Reads alone, of a or of both.
LAMINA_FOR_THIS_CPU void read(const Share& s) {
  Word all = 0;
  if (s.b != nullptr) {
    for (size_t i = 0; i < s.lines * 16; ++i) all ^= s.a[i] ^ s.b[i];
  } else if (s.a != nullptr) {
    for (size_t i = 0; i < s.lines * 16; ++i) all ^= s.a[i];
  }
  asm volatile("" : : "r"(all));  // the reads are the purpose
}

// Writes alone.
LAMINA_FOR_THIS_CPU void fill(const Share& s) {
  for (Word* const to : {s.out, s.second_out}) {
    if (to == nullptr) continue;
    for (size_t i = 0; i < s.lines * 16; ++i) to[i] = 1;
  }
}

void copy_by_library(const Share& s) { std::memcpy(s.out, s.a, s.lines * 64); }

// The same written out: whole lines or halves, with ordinary and with non-temporal stores, without and with asking ahead for
// what is read, into the first-level cache or, further ahead, into the second. These are what lamina's kernels choose among.
enum class Stores { ordinary, streaming };
enum class Reads { plain, to_first, to_second };

// Words ahead: the machine's own prefetching stops at the end of a page.
constexpr size_t kAheadToFirst = 4096 / sizeof(Word), kAheadToSecond = 16384 / sizeof(Word);

template <Reads reads>
inline void ask_for(const Word* from) {
  if constexpr (reads == Reads::to_first) __builtin_prefetch(from + kAheadToFirst, 0, 3);
  if constexpr (reads == Reads::to_second) __builtin_prefetch(from + kAheadToSecond, 0, 2);
}

template <Stores stores>
inline void drain() {
  if constexpr (stores == Stores::streaming) _mm_sfence();
}

#define LAMINA_AVX512 __attribute__((target("avx512f")))

LAMINA_AVX512 inline __m512i line_at(const Word* from) { return _mm512_loadu_si512(from); }

template <Stores stores>
LAMINA_AVX512 inline void put(Word* to, __m512i line) {
  if constexpr (stores == Stores::streaming)
    _mm512_stream_si512(reinterpret_cast<__m512i*>(to), line);
  else
    _mm512_storeu_si512(to, line);
}

template <Stores stores, Reads reads>
LAMINA_AVX512 void copy_lines(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 16) {
    ask_for<reads>(s.a + i);
    put<stores>(s.out + i, line_at(s.a + i));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX512 void triad_lines(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 16) {
    ask_for<reads>(s.a + i);
    ask_for<reads>(s.b + i);
    put<stores>(s.out + i, _mm512_xor_si512(line_at(s.a + i), line_at(s.b + i)));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX512 void two_to_two_lines(const Share& s) {
  const __m512i ones = _mm512_set1_epi32(-1);
  for (size_t i = 0; i < s.lines * 16; i += 16) {
    ask_for<reads>(s.a + i);
    ask_for<reads>(s.b + i);
    const __m512i both = _mm512_xor_si512(line_at(s.a + i), line_at(s.b + i));
    put<stores>(s.out + i, both);
    put<stores>(s.second_out + i, _mm512_xor_si512(both, ones));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX512 void shrink_lines(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 16) {
    const Word* const from = s.a + i * 4;
    for (size_t line = 0; line < 4; ++line) ask_for<reads>(from + line * 16);
    const __m512i low = _mm512_xor_si512(line_at(from), line_at(from + 16));
    const __m512i high = _mm512_xor_si512(line_at(from + 32), line_at(from + 48));
    put<stores>(s.out + i, _mm512_xor_si512(low, high));
  }
  drain<stores>();
}

template <Stores stores>
LAMINA_AVX512 void fill_lines(const Share& s) {
  const __m512i ones = _mm512_set1_epi32(1);
  for (Word* const to : {s.out, s.second_out}) {
    if (to == nullptr) continue;
    for (size_t i = 0; i < s.lines * 16; i += 16) put<stores>(to + i, ones);
  }
  drain<stores>();
}

// For machines without AVX-512.
#define LAMINA_AVX __attribute__((target("avx")))

LAMINA_AVX inline __m256 half_line_at(const Word* from) { return _mm256_loadu_ps(reinterpret_cast<const float*>(from)); }

template <Stores stores>
LAMINA_AVX inline void put(Word* to, __m256 half_line) {
  if constexpr (stores == Stores::streaming)
    _mm256_stream_ps(reinterpret_cast<float*>(to), half_line);
  else
    _mm256_storeu_ps(reinterpret_cast<float*>(to), half_line);
}

template <Stores stores, Reads reads>
LAMINA_AVX void copy_halves(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 8) {
    if (i % 16 == 0) ask_for<reads>(s.a + i);
    put<stores>(s.out + i, half_line_at(s.a + i));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX void triad_halves(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 8) {
    if (i % 16 == 0) ask_for<reads>(s.a + i);
    if (i % 16 == 0) ask_for<reads>(s.b + i);
    put<stores>(s.out + i, _mm256_xor_ps(half_line_at(s.a + i), half_line_at(s.b + i)));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX void two_to_two_halves(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 8) {
    if (i % 16 == 0) ask_for<reads>(s.a + i);
    if (i % 16 == 0) ask_for<reads>(s.b + i);
    const __m256 both = _mm256_xor_ps(half_line_at(s.a + i), half_line_at(s.b + i));
    put<stores>(s.out + i, both);
    put<stores>(s.second_out + i, _mm256_xor_ps(both, half_line_at(s.a + i)));
  }
  drain<stores>();
}

template <Stores stores, Reads reads>
LAMINA_AVX void shrink_halves(const Share& s) {
  for (size_t i = 0; i < s.lines * 16; i += 8) {
    const Word* const from = s.a + i * 4;
    for (size_t line = 0; line < 2; ++line) ask_for<reads>(from + line * 16);
    const __m256 low = _mm256_xor_ps(half_line_at(from), half_line_at(from + 8));
    const __m256 high = _mm256_xor_ps(half_line_at(from + 16), half_line_at(from + 24));
    put<stores>(s.out + i, _mm256_xor_ps(low, high));
  }
  drain<stores>();
}

template <Stores stores>
LAMINA_AVX void fill_halves(const Share& s) {
  const __m256 ones = _mm256_set1_ps(1);
  for (Word* const to : {s.out, s.second_out}) {
    if (to == nullptr) continue;
    for (size_t i = 0; i < s.lines * 16; i += 8) put<stores>(to + i, ones);
  }
  drain<stores>();
}

// The part of `all` that is this thread's; the lines of a are `in_words` words.
Share part_of(const Share& all, size_t in_words) {
  const auto threads = static_cast<size_t>(omp_get_num_threads());
  const auto thread = static_cast<size_t>(omp_get_thread_num());
  const size_t begin = all.lines * thread / threads, end = all.lines * (thread + 1) / threads;
  const auto from = [&](auto* tensor, size_t words) { return tensor == nullptr ? nullptr : tensor + begin * words; };
  return {from(all.a, in_words), from(all.b, in_words), from(all.out, 16), from(all.second_out, 16), end - begin};
}

// One way to do all of it.
struct Way {
  std::string name;
  Move move;   // of the big tensors; gamma and beta are read after them
  Move write;  // of the column sums
};

// Each thread moves one contiguous share of each tensor; less than four lines at the end are left out. Little work stays on
// the calling thread, as a kernel's would.
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

// The ways of a move that is written out, by this machine's widest registers; none where they are narrow.
#define LAMINA_WRITTEN_WAYS(name, move, fill)                                                            \
  std::vector<Way> {                                                                                     \
    {name ", lines", move<Stores::ordinary, Reads::plain>, fill<Stores::ordinary>},                      \
        {name ", to L1", move<Stores::ordinary, Reads::to_first>, fill<Stores::ordinary>},               \
        {name ", to L2", move<Stores::ordinary, Reads::to_second>, fill<Stores::ordinary>},              \
        {name ", streaming", move<Stores::streaming, Reads::plain>, fill<Stores::streaming>},            \
        {name ", streaming, to L1", move<Stores::streaming, Reads::to_first>, fill<Stores::streaming>},  \
        {name ", streaming, to L2", move<Stores::streaming, Reads::to_second>, fill<Stores::streaming>}, \
  }
#define LAMINA_WRITTEN_FOR_HERE(name, move)                                                  \
  (__builtin_cpu_supports("avx512f") ? LAMINA_WRITTEN_WAYS(name, move##_lines, fill_lines)   \
   : __builtin_cpu_supports("avx")   ? LAMINA_WRITTEN_WAYS(name, move##_halves, fill_halves) \
                                     : std::vector<Way>{})

std::vector<Way> ways_for(Case which) {
  const CaseTraits& traits = traits_of(which);
  const auto with = [](std::vector<Way> ways, const std::vector<Way>& more) {
    ways.insert(ways.end(), more.begin(), more.end());
    return ways;
  };
  if (traits.to_s8) return with({{"shrink", shrink, fill}}, LAMINA_WRITTEN_FOR_HERE("shrink", shrink));
  if (traits.writes == 2) return with({{"2 to 2", two_to_two, fill}}, LAMINA_WRITTEN_FOR_HERE("2 to 2", two_to_two));
  if (traits.reads == 2) return with({{"triad", triad, fill}}, LAMINA_WRITTEN_FOR_HERE("triad", triad));
  return with({{"copy", copy, fill}, {"memcpy", copy_by_library, fill}}, LAMINA_WRITTEN_FOR_HERE("copy", copy));
}

}  // namespace

std::vector<Contender> roof_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs) {
  const CaseTraits& traits = traits_of(which);
  if (traits.to_s8 && problem.type != Type::f32) throw std::logic_error("the roof of a quantised case is made for f32");
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
