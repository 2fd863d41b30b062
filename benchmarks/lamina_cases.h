// The graphs of the cases, for programs that need more than a contender.
#pragma once

#include "contenders.h"
#include "graph/lamina.hpp"

namespace bench {

// Finalized. It has one partition, if lamina fuses all of it.
lamina::graph::graph lamina_graph(Case which, const Problem& problem, float epsilon = kEpsilon);

}  // namespace bench
