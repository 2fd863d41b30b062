// Which graphs of a corpus are small enough for a test.
#pragma once

#include <cstdint>

#include "interface/graph.h"

namespace lamina::testing {

// At most four million elements in all tensors of a known shape: larger graphs would take too long.
inline bool is_small(const Graph& graph) {
  constexpr int64_t kMost = 4'000'000;
  int64_t count = 0;
  for (const Value& value : graph.values())
    if (value.tensor.has_full_shape()) count += value.tensor.element_count();
  return count <= kMost;
}

}  // namespace lamina::testing
