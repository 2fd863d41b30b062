// How many rows go together along rows, in strips or whole, and where the rows to come wait.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::cpu {

// Whether what is known once per row is computed for all rows of a tile together, a lane each: mean and variance are much to
// compute beside a short row, other reductions are not.
bool batches_rows(const kernel::Kernel& kernel);

// Several short rows go through a phase before any goes through the next.
int rows_per_tile(const kernel::Kernel& kernel);

// Whether the last walk may go in strips. Rows without a sum are walked over the range that the code is called with: each strip
// would walk all of it.
bool may_take_strips(const kernel::Kernel& kernel);

// Whether walks ask for rows to come, and so where these wait is a choice: one walk alone has no time to ask, and rows across
// lanes always wait in the second-level cache.
bool asks_for_rows(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether converted elements may be kept between the walks along a row; across rows they always are, where several threads
// share a row never.
bool may_keep_conversions(const kernel::Kernel& kernel, const Schedule& schedule, const Footprint& bytes);

// The args that a walk may ask for a little ahead of itself, of which a row takes more than so many bytes.
std::vector<int> inputs_longer_than(const kernel::Kernel& kernel, int64_t bytes);

// After choose_lanes and choose_streaming.
void choose_strips(Schedule& schedule, const kernel::Kernel& kernel, const Footprint& bytes, const Caches& caches);

// The same for rows that threads divide among them.
void choose_strips_of_split_rows(Schedule& schedule, const kernel::Kernel& kernel);

// After choose_strips, and again where it changed what is before it.
void choose_rows_together(Schedule& schedule, const kernel::Kernel& kernel);

// After choose_strips.
void choose_prefetching(Schedule& schedule, const kernel::Kernel& kernel, const Footprint& bytes, const Caches& caches);

// Of large tiles, several inputs gain by being fetched into the first-level cache, a single one mostly loses.
bool reads_several_streams(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
