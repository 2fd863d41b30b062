// Loops on all threads. Every iteration writes to separate memory and sums in a fixed order, so results do not depend on the
// number of threads. Bodies must not throw.
#pragma once

#include <cstdint>

namespace lamina::reference {

inline constexpr int64_t kWorthThreads = 1 << 15;  // steps below which starting threads costs more than it saves

// Calls body(i) for every i in [0, count). `steps` is the approximate cost of one call.
template <typename Body>
void parallel_for(int64_t count, int64_t steps, const Body& body) {
#pragma omp parallel for schedule(static) if (count > 1 && (steps >= kWorthThreads || count * steps >= kWorthThreads))
  for (int64_t i = 0; i < count; ++i) body(i);
}

// Calls body(i) for single elements.
template <typename Body>
void parallel_elements(int64_t count, const Body& body) {
  parallel_for(count, 1, body);
}

}  // namespace lamina::reference
