// The graphs of the cases, for what needs more of lamina than a contender to run.
#pragma once

#include "contenders.h"
#include "graph/lamina.hpp"

namespace bench {

// Finalized: one partition, if lamina fuses it whole.
lamina::graph::graph lamina_graph(Case which, const Problem& problem, float epsilon = kEpsilon);

}  // namespace bench
