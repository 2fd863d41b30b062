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

// Rows of a tile at most.
inline constexpr int kMaxRowsInTile = 8;

// What is to be waited for at the ends of rows, in a tile of so many, of what it would be in rows that go alone and wait for
// nobody else's arithmetic.
double seen_of_ends(const kernel::Kernel& kernel, int rows);

// Whether the last walk may go in strips. Rows without a sum are walked over the range that the code is called with: each strip
// would walk all of it.
bool may_take_strips(const kernel::Kernel& kernel);

// Whether walks ask for rows to come, and so where these wait is a choice: one walk alone has no time to ask, and rows across
// lanes always wait in the second-level cache.
bool may_prefetch_rows(const kernel::Kernel& kernel, const Schedule& schedule);

// Whether converted elements may be kept between the walks along a row; across rows they always are, where several threads
// share a row never.
bool may_keep_conversions(const kernel::Kernel& kernel, const Schedule& schedule, const Footprint& bytes);

// The args that a walk may ask for a little ahead of itself.
std::vector<int> inputs_along_rows(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
