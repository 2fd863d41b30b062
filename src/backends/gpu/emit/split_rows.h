// The split schedule: several teams share a row, each with some of its blocks, and every phase with a walk is a separate
// kernel. The results of the blocks are in the row's state, eight bytes per value, one per block for each value of a
// reduction. A kernel first joins the results of earlier phases in the order of the blocks, so that every team has the row's
// values.
#pragma once

#include "backends/gpu/emit/row_loops.h"

namespace lamina::gpu {

void emit_split_rows(Parts& parts);

}  // namespace lamina::gpu
