// Shared by the clients of these tests: compiles a few graphs, executes them, and returns a digest of the bits.
#pragma once

#include <cstdint>

#include "../api/graph_cases.h"

namespace processes {

using api_test::Bytes;
using api_test::CompiledCase;

// FNV-1a over all results, in order.
inline uint64_t digest_of(const std::vector<Bytes>& results, uint64_t digest = 14695981039346656037u) {
  for (const Bytes& each : results)
    for (const std::byte one : each) digest = (digest ^ static_cast<uint64_t>(one)) * 1099511628211u;
  return digest;
}

// Runs `kernels` norms of different structures, and a chain with a library step if `products` is set.
inline uint64_t digest_of_work(int kernels, bool products) {
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  uint64_t digest = 0;
  for (int i = 0; i < kernels; ++i)
    digest = digest_of(CompiledCase(api_test::layer_norm_case(24, 128 + 16 * i), cpu).run(cpu), digest);
  if (products) digest = digest_of(CompiledCase(api_test::mlp_case(16, 32, 48), cpu).run(cpu), digest);
  return digest;
}

}  // namespace processes
