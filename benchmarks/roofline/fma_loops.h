// Loops of fused multiply-adds in registers, which reach the peak of a core.
#pragma once

#include <vector>

namespace bench {

struct FmaLoop {
  long sums;                 // f32 sums, to each of which an iteration adds a product
  float (*run)(long count);  // iterations
};

// Those that this machine runs.
std::vector<FmaLoop> fma_loops();

}  // namespace bench
