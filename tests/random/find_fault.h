// What must hold of any graph: its dump reads as it was written; what runs gives the reference's results, the same bits with
// any number of threads, fused or op by op where nothing is rounded in between, and each of its kernels the interpreter's.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "backends/backend.h"
#include "random/recipe.h"

namespace lamina::testing {

struct Findings {
  std::string fault;                         // one sentence; "": nothing is wrong
  std::map<std::string, size_t> partitions;  // by backend name; "refused" counts those that no backend runs
  size_t kernels = 0;                        // that were interpreted
};

// `backend` is tried first; what it refuses runs by the reference. `seed` fills the inputs.
Findings find_fault(const Recipe& recipe, const Backend& backend, uint64_t seed);

// A graph with as few ops as are needed for a fault; the fault may become another one on the way.
Recipe shrink(Recipe recipe, const Backend& backend, uint64_t seed);

}  // namespace lamina::testing
