// What is compared: each contender does the same work on the same inputs.
//   forward    dst, mean, variance = LayerNorm(src, gamma, beta)                              1 big read, 1 big write
//   backward   diff_src, diff_gamma, diff_beta = LayerNormBackward(src, diff_dst, ...)         2 big reads, 1 big write
//   chain      dst = GELU(LayerNorm(src + other, gamma, beta))                                 2 big reads, 1 big write
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "buffers.h"

namespace bench {

enum class Case { forward, backward, chain };
inline const char* name_of(Case which) {
  return which == Case::forward ? "LayerNorm" : which == Case::backward ? "LayerNormBackward" : "Add+LayerNorm+GELU";
}
inline int big_reads(Case which) { return which == Case::forward ? 1 : 2; }

struct Contender {
  std::string name;
  std::function<void()> run;
};

Contender lamina_contender(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);

// The ways in which oneDNN can do it; the fastest counts.
std::vector<Contender> onednn_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);

// Moving the same bytes and nothing else, with ordinary and with non-temporal stores; the fastest counts.
std::vector<Contender> roof_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);

inline constexpr float kEpsilon = 1e-5f;

}  // namespace bench
