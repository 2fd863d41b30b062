// Loops on all threads. Every iteration writes to places of its own and sums in an order of its own, so results do not depend
// on how many threads there are. Bodies do not throw.
#pragma once

#include <cstdint>

namespace lamina::reference {

inline constexpr int64_t kWorthThreads = 1 << 15;  // steps below which starting threads costs more than it saves

// body(i) for every i of [0, count); `steps` is the rough cost of one.
template <typename Body>
void parallel_for(int64_t count, int64_t steps, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1 && (steps >= kWorthThreads || count * steps >= kWorthThreads))
  for (int64_t i = 0; i < count; ++i) body(i);
}

// body(i) for single elements.
template <typename Body>
void parallel_elements(int64_t count, const Body& body) {
  parallel_for(count, 1, body);
}

}  // namespace lamina::reference
