// How many rows run together along rows, in strips or whole, and the cache level of prefetched rows.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Whether row values are computed for all rows of a tile together, one lane each. Mean and variance need much computation
// compared with a short row; other reductions do not.
bool batches_rows(const kernel::Kernel& kernel);

// The most rows per tile.
inline constexpr int kMaxRowsInTile = 8;

// The fraction of the latency at the ends of rows that remains visible in a tile of `rows` rows, relative to rows that run
// alone.
double seen_of_ends(const kernel::Kernel& kernel, int rows);

// Whether the last walk may run in strips. Rows without a sum are walked over the range that the call specifies, so each
// strip would walk all of it.
bool may_take_strips(const kernel::Kernel& kernel);

// Whether walks prefetch the next rows, so that the target cache level is a choice. A single walk has no time to prefetch,
// and rows across lanes always use the second level.
bool may_prefetch_rows(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether converted elements may be kept between the walks along a row. Across rows they always are; if several threads share
// a row, they never are.
bool may_keep_conversions(const kernel::Kernel& kernel, const Schedule& schedule, const Footprint& bytes);

// The args that a walk may prefetch a little ahead.
std::vector<int> inputs_along_rows(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
