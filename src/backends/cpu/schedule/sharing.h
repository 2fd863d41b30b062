// How rows are divided among threads: as a whole, or along the row.
#pragma once

#include "backends/cpu/program/row_sharing.h"
#include "backends/cpu/schedule/footprint.h"
#include "backends/cpu/schedule/machine.h"

namespace lamina::cpu {

// Whether rows of this kernel can be divided among threads, which needs more than one part per row.
bool may_be_split(const kernel::Kernel& kernel);

// Whether rows are too short for threads to reduce parts of them. Each thread then reduces whole rows, and only the last
// phase, which sums columns, is divided by columns. Otherwise many threads would share only a few blocks of rows.
bool reduces_whole_rows(const kernel::Kernel& kernel);

RowSharing row_sharing(const kernel::Kernel& kernel, const Caches& caches);

}  // namespace lamina::cpu
