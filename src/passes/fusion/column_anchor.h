// Decides over which dims the loop nest of a group runs that starts with a plain sum.
//
//   dy ──┐                            A sum along the rows of this nest reads one column after another. If the tensor that it
//        GELU' ──┬──> diff_src        sums is written by the same nest, each column costs a line of the cache per row.
//   x ───┘       └──> sum ──> bias    So the nest runs over rows, and the sum is a column output, as the gradient of beta is.
#pragma once

#include <optional>
#include <vector>

#include "passes/fusion/grow_group.h"

namespace lamina {

// The inner dims of the nest if the sum `op` is a column output of it: the dims after the summed ones. nullopt: the sum
// reduces inner dims. That is so if
//   - no op of another loop nest makes the tensor,
//   - too few rows are summed to divide them among threads, or the rows are too short for vectors,
//   - an op reads the sum for each of the summed rows, which must wait for it in one nest (x / sum(x)).
std::optional<std::vector<bool>> inner_dims_below_sum(const FusionState& state, int op);

}  // namespace lamina
