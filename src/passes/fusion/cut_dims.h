// Cuts an iteration dim into several: of an op's view, and of a list of extents.
#pragma once

#include <vector>

#include "interface/logical_tensor.h"
#include "passes/fusion/iteration_view.h"

namespace lamina {

// The maps of `view` then have `count` dims in place of `dim`.
void cut_in_view(IterationView& view, int dim, int count);

// `pieces`: the extents of the dims in place of `dim`; they are all inner dims, or none, as that was.
void cut_in_extents(Dims& extents, std::vector<bool>& inner, int dim, const Dims& pieces);

}  // namespace lamina
