// The peak of fused multiply-adds, measured in the run of a benchmark.
#pragma once

#include <algorithm>

#include "../turns.h"
#include "fma_loops.h"

namespace bench {

// GF/s of all threads; 0 if the program has no loop for the machine.
inline double fma_peak(int threads, double seconds) {
  constexpr long kCount = 1 << 20;
  volatile float sink = 0;
  double best = 0;
  for (const FmaLoop& loop : fma_loops()) {
    const double time = best_times({[&] {
#pragma omp parallel num_threads(threads)
                                     {
                                       const float result = loop.run(kCount);
#pragma omp critical
                                       sink = sink + result;
                                     }
                                   }},
                                   seconds, threads)[0];
    best = std::max(best, 2e-9 * static_cast<double>(loop.sums * kCount * threads) / time);
  }
  return best;
}

}  // namespace bench
