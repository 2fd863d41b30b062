// Properties of every graph: its dump reads back as the same graph; supported partitions give the reference's results, with the
// same bits for any number of threads and, if no intermediate value is rounded, fused or op by op; and each kernel gives the
// interpreter's bits.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "backends/backend.h"
#include "random/recipe.h"

namespace lamina::testing {

struct Findings {
  std::string fault;                         // one sentence; "" if there is none
  std::map<std::string, size_t> partitions;  // by backend name; "refused" counts partitions that no backend supports
  size_t kernels = 0;                        // number of kernels that were interpreted
};

// Tries `backend` first; the reference runs partitions that `backend` refuses. `seed` determines the inputs.
Findings find_fault(const Recipe& recipe, const Backend& backend, uint64_t seed);

// Removes ops while a fault remains. The fault that remains may differ from the first one.
Recipe shrink(Recipe recipe, const Backend& backend, uint64_t seed);

}  // namespace lamina::testing
