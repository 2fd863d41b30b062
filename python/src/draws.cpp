// Random masks of dropout, with the numbers of torch's CPU generator, whose own draws take several times as long.
//
// The generator is a Mersenne Twister (Matsumoto and Nishimura, ACM TOMACS 8, 1998). torch draws a boolean from two words, the
// high one first: the 53 low bits of both, as a fraction of 2^53, are below the probability. The state is the tensor that
// torch.Generator.get_state returns.
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>

#include "bindings.h"
#include "graph/lamina.hpp"
#include "views.h"

namespace lamina::python {
namespace {

constexpr size_t kWords = 624, kLag = 397;
constexpr int64_t kDrawsAtOnce = 1024;
constexpr uint64_t kFraction = uint64_t{1} << 53;

// The beginning of torch's state. A word of the twister takes 8 bytes.
struct State {
  uint64_t seed;
  int32_t left;  // one more than the words that can be drawn before the next twist
  int32_t seeded;
  uint64_t next;  // the word that is drawn next
  std::array<uint64_t, kWords> words;
};

uint32_t twisted(uint32_t word, uint32_t next, uint32_t far) {
  const uint32_t joined = (word & 0x80000000U) | (next & 0x7fffffffU);
  return far ^ (joined >> 1) ^ (-(joined & 1U) & 0x9908b0dfU);
}

#define LAMINA_INLINED __attribute__((always_inline)) inline

LAMINA_INLINED void twist(std::array<uint32_t, kWords>& words) {
  constexpr size_t kNear = kWords - kLag;
  for (size_t i = 0; i < kNear; ++i) words[i] = twisted(words[i], words[i + 1], words[i + kLag]);
  for (size_t i = kNear; i + 1 < kWords; ++i) words[i] = twisted(words[i], words[i + 1], words[i - kNear]);
  words[kWords - 1] = twisted(words[kWords - 1], words[0], words[kLag - 1]);
}

LAMINA_INLINED void temper(const uint32_t* words, size_t count, uint32_t* drawn) {
  for (size_t i = 0; i < count; ++i) {
    uint32_t word = words[i];
    word ^= word >> 11;
    word ^= (word << 7) & 0x9d2c5680U;
    word ^= (word << 15) & 0xefc60000U;
    drawn[i] = word ^ (word >> 18);
  }
}

LAMINA_INLINED void compare(const uint32_t* drawn, int64_t count, int64_t limit, uint8_t* mask) {
  for (int64_t i = 0; i < count; ++i) {
    const uint64_t both = uint64_t{drawn[2 * i]} << 32 | drawn[2 * i + 1];
    mask[i] = static_cast<int64_t>(both & (kFraction - 1)) < limit ? 1 : 0;
  }
}

LAMINA_INLINED void draw_all(State& state, uint8_t* mask, int64_t count, int64_t limit) {
  std::array<uint32_t, kWords> words;
  std::array<uint32_t, 2 * kDrawsAtOnce> drawn;
  std::copy(state.words.begin(), state.words.end(), words.begin());
  for (int64_t first = 0; first < count; first += kDrawsAtOnce) {
    const int64_t draws = std::min(count - first, kDrawsAtOnce);
    for (size_t have = 0, wanted = 2 * static_cast<size_t>(draws); have < wanted;) {
      if (state.left == 1) {
        twist(words);
        state.left = static_cast<int32_t>(kWords) + 1;
        state.next = 0;
      }
      const size_t taken = std::min(wanted - have, static_cast<size_t>(state.left) - 1);
      temper(words.data() + state.next, taken, drawn.data() + have);
      have += taken;
      state.left -= static_cast<int32_t>(taken);
      state.next += taken;
    }
    compare(drawn.data(), draws, limit, mask + first);
  }
  std::copy(words.begin(), words.end(), state.words.begin());
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) void draw_avx2(State& state, uint8_t* mask, int64_t count, int64_t limit) {
  draw_all(state, mask, count, limit);
}

__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void draw_avx512(State& state, uint8_t* mask, int64_t count,
                                                                               int64_t limit) {
  draw_all(state, mask, count, limit);
}

bool has_avx512() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vl");
}
#endif

void draw(State& state, uint8_t* mask, int64_t count, int64_t limit) {
#if defined(__x86_64__)
  if (has_avx512()) return draw_avx512(state, mask, count, limit);
  if (__builtin_cpu_supports("avx2")) return draw_avx2(state, mask, count, limit);
#endif
  draw_all(state, mask, count, limit);
}

// The number of elements of a view without gaps, in any order of its dims.
int64_t dense_count(const View& view, const char* what) {
  int64_t count = 1, last = 0;
  for (size_t d = 0; d < static_cast<size_t>(view.rank); ++d) {
    count *= view.dims[d];
    last += (view.dims[d] - 1) * view.strides[d];
  }
  if (count > 0 && last != count - 1)
    throw error(lamina_invalid_arguments, std::string(what) + " has gaps between its elements");
  return count;
}

void draw_mask(nb::handle generator, nb::handle elements, double probability) {
  const View bytes = view_of(generator, true, "state"), mask = view_of(elements, true, "mask");
  if (bits_of(bytes.type) != 8 || dense_count(bytes, "state") < static_cast<int64_t>(sizeof(State)))
    throw error(lamina_invalid_arguments, "state is not the state of a torch.Generator of the CPU");
  if (mask.type != lamina_boolean)
    throw error(lamina_invalid_arguments, std::string("mask has type ") + name_of(mask.type) + ", allowed is boolean");
  if (!(probability >= 0 && probability <= 1))
    throw error(lamina_invalid_arguments, "probability is " + std::to_string(probability) + ", allowed is 0 to 1");
  State state;
  std::memcpy(&state, bytes.memory, sizeof state);
  const bool is_valid = state.left >= 1 && state.left <= static_cast<int32_t>(kWords) &&
                        state.next + static_cast<uint64_t>(state.left) - 1 <= kWords;
  if (!is_valid) throw error(lamina_invalid_arguments, "state does not say which word is drawn next");
  const auto limit = static_cast<int64_t>(std::ceil(std::ldexp(probability, 53)));
  draw(state, static_cast<uint8_t*>(mask.memory), dense_count(mask, "mask"), limit);
  std::memcpy(bytes.memory, &state, sizeof state);
}

}  // namespace

void bind_draws(nb::module_& m) {
  m.def("draw_mask", &draw_mask, nb::arg("state"), nb::arg("mask"), nb::arg("probability"),
        "Fills `mask`, booleans without gaps, in the order of its memory: each is true with the given probability.\n\n"
        "The numbers are those that a torch.Generator of the CPU with this state (get_state()) draws for\n"
        "bernoulli_, where torch does not use MKL. `state` becomes the state after them. The GIL is held. Raises\n"
        "lamina.Error for other tensors, and for a probability that is not from 0 to 1.");
}

}  // namespace lamina::python
