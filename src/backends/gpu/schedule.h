// How a GPU runs a kernel: which threads share a row, and what each holds of it.
//
// A row of N elements is cut into chunks of `vector` neighbouring elements of the innermost dim. A *team* of threads shares a
// row: thread t takes chunks t, t + team, t + 2 team, ... of a block of team * steps chunks; a row longer than a block takes
// several. A thread adds up its own elements in order, the team's sums are folded in a fixed tree (first inside warps of 32),
// blocks are added up as pairs of floats. All of that follows from the inner dims, the dtypes and the kind of device, never
// from the number of rows: so are results batch-invariant. Shapes of teams, as the field calls them:
//   packed        several rows in a warp (team < 32)
//   warp, block   a warp (team 32) or a work-group (team > 32) a row
//   transposed    rows lie side by side in memory, their elements do not: neighbouring threads take neighbouring rows
//   flat          no reduction: every thread takes one chunk of the whole grid
//   split         few long rows: several teams share a row block by block, and a launch is made for every phase; each team
//   joins
//                 what the blocks came to in the phases before, in their order, so that the bits are those of one team
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::gpu {

// What schedules look at.
struct DeviceLimits {
  int max_group = 1024;   // threads in a work-group
  int compute_units = 1;  // work-groups that run side by side, at least
  bool has_f64 = true;
};

struct Schedule {
  bool flat = false;
  bool rows_adjacent = false;  // transposed
  int team = 1;                // threads that share a row, a power of two
  int rows_per_group = 1;      // teams in a work-group, a power of two
  int vector = 1;
  int steps = 1;                  // chunks of a thread in one block of a row
  int64_t column_rows = 0;        // rows behind one partial sum of a column; 0: the kernel has no column sums
  bool column_registers = false;  // partial sums stay in registers until the block of rows is done; else in memory
  bool split = false;             // the one choice that looks at the number of rows, for it changes no bit
  bool wide_offsets = false;      // offsets inside a tensor need 64 bits
  int group_size() const { return team * rows_per_group; }
  int64_t block() const { return int64_t{team} * vector * steps; }
  bool operator==(const Schedule&) const = default;
};

Schedule choose_schedule(const kernel::Kernel& kernel, const DeviceLimits& limits);

// "packed", "warp", "block", "transposed", "split" or "flat", and "columns" behind it where there are column sums.
const char* name_of(const Schedule& schedule);

// Rows of one block stay in registers between phases.
bool is_persistent(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace lamina::gpu
