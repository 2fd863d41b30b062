// The contenders. Each does the same work on the same inputs. big = one tensor of rows x columns.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "buffers.h"

namespace bench {

enum class Case { forward, forward_stats, backward, residual, residual_sum, chain, quantized, rms_norm, softmax };

struct CaseTraits {
  Case which;
  const char* name;
  int reads, writes;                        // number of big tensors that must be read and written
  int column_reads = 0, column_writes = 0;  // number of tensors of one row's length that must be read and written
  bool to_s8 = false;                       // dst is s8
};

// In the order of the enumerators.
inline constexpr CaseTraits kCases[] = {
    {Case::forward, "LayerNorm", 1, 1, 2},               // dst = LayerNorm(src, gamma, beta)
    {Case::forward_stats, "LayerNorm+stats", 1, 1, 2},   // dst, mean, variance = ...
    {Case::backward, "LayerNormBackward", 2, 1, 1, 2},   // diff_src, diff_gamma, diff_beta = ...(src, diff_dst, mean, ...)
    {Case::residual, "Add+LayerNorm", 2, 1, 2},          // dst = LayerNorm(src + other, gamma, beta)
    {Case::residual_sum, "Add+LayerNorm+sum", 2, 2, 2},  // sum = src + other, dst = LayerNorm(sum, gamma, beta)
    {Case::chain, "Add+LayerNorm+GELU", 2, 1, 2},        // dst = GELU(LayerNorm(src + other, gamma, beta))
    {Case::quantized, "LayerNorm+GELU+Quantize", 1, 1, 2, 0, true},  // dst (s8) = Quantize(GELU(LayerNorm(src, gamma, beta)))
    {Case::rms_norm, "RMSNorm", 1, 1, 1},                            // dst = RMSNorm(src, gamma)
    {Case::softmax, "SoftMax", 1, 1},                                // dst = SoftMax(src), along each row
};
inline const CaseTraits& traits_of(Case which) { return kCases[static_cast<size_t>(which)]; }
inline const char* name_of(Case which) { return traits_of(which).name; }
inline Type type_of_dst(Case which, const Problem& problem) { return traits_of(which).to_s8 ? Type::s8 : problem.type; }
// Includes gamma, beta and column sums, which are as large as src if there is one long row. Excludes statistics, one value
// per row.
inline size_t moved_bytes(Case which, const Problem& problem) {
  const CaseTraits& traits = traits_of(which);
  return problem.count() * (static_cast<size_t>(traits.reads) * bytes_of(problem.type) +
                            static_cast<size_t>(traits.writes) * bytes_of(type_of_dst(which, problem))) +
         static_cast<size_t>(traits.column_reads + traits.column_writes) * problem.column_bytes();
}

// Untimed calls before calls that are timed: threads wake up, and caches fill with this contender's data.
inline constexpr int kSettlingCalls = 12;
// Before all rounds, of lamina: long calls have chosen their accesses to memory by time then.
inline constexpr int kLaminaSettlingCalls = 60;

struct Contender {
  std::string name;
  std::function<void()> run;
  int settling_calls = kSettlingCalls;  // untimed, before all rounds
};

// Throws lamina::error with lamina's reason if it refuses the case. The name contains the number of partitions if it is not
// one.
Contender lamina_contender(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);

// The variants of oneDNN for the case; the fastest counts. Empty if oneDNN is missing or cannot do it.
std::vector<Contender> onednn_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);
std::string onednn_version();  // "" if oneDNN is missing

// Only move the same bytes, with every kind of store and prefetch that lamina may use; the fastest counts.
std::vector<Contender> roofline_contenders(Case which, const Problem& problem, const Inputs& inputs, const Outputs& outputs);

inline constexpr float kEpsilon = 1e-5f;
inline constexpr float kQuantizeScale = 0.03f;

}  // namespace bench
