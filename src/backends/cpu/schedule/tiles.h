// How many rows go together along rows, in strips or whole, and where the rows to come wait.
#pragma once

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Whether what is known once per row is computed for all rows of a tile together, a lane each: mean and variance are much to
// compute beside a short row, other reductions are not.
bool batches_rows(const kernel::Kernel& kernel);

// Several short rows go through a phase before any goes through the next.
int rows_per_tile(const kernel::Kernel& kernel);

// After choose_lanes and choose_streaming.
void choose_strips(Schedule& schedule, const kernel::Kernel& kernel, const Footprint& bytes, const Caches& caches);

// The same for rows that threads divide among them.
void choose_strips_of_split_rows(Schedule& schedule, const kernel::Kernel& kernel);

// After choose_strips.
void choose_prefetching(Schedule& schedule, const kernel::Kernel& kernel, const Footprint& bytes, const Caches& caches);

// Of large tiles, several inputs gain by being fetched into the first-level cache, a single one mostly loses.
bool reads_several_streams(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
