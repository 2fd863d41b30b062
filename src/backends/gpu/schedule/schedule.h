// How a GPU runs a kernel: which threads share a row, and which elements each has.
//
// A row of N elements is cut into chunks of `vector` neighbouring elements of the innermost dim. A *team* of threads shares a
// row: thread t has chunks t, t + team, t + 2 team, ... of a block of team * steps chunks. A longer row has several blocks. A
// thread adds its own elements in order, the team's sums are folded in a fixed tree (first inside warps of 32), and blocks
// are added as pairs of floats. All of this depends only on the inner dims, the dtypes and the kind of device, not on the
// number of rows, so results are batch-invariant. The shapes of teams, in the field's terms:
//   packed        several rows in a warp (team < 32)
//   warp, block   one row per warp (team 32) or per work-group (team > 32)
//   transposed    rows are contiguous in memory across the row, not along it: neighbouring threads run neighbouring rows
//   flat          no reduction: every thread runs one chunk of the whole grid
//   split         few long rows: several teams share a row block by block, with one launch per phase. Each team joins the
//                 results of the blocks of earlier phases, in their order, so that the bits are those of one team
#pragma once

#include <cstdint>

#include "kernels/loop_plan.h"

namespace lamina::gpu {

// The properties of a device that schedules depend on.
struct DeviceLimits {
  int max_group = 1024;   // threads in a work-group
  int compute_units = 1;  // work-groups that can run at the same time, at least
  bool has_f64 = true;
};

struct Schedule {
  bool flat = false;
  bool rows_adjacent = false;  // transposed
  int team = 1;                // threads that share a row, a power of two
  int rows_per_group = 1;      // teams in a work-group, a power of two
  int vector = 1;
  int steps = 1;                  // chunks of a thread in one block of a row
  int64_t column_rows = 0;        // rows in one partial sum of a column; 0: the kernel has no column sums
  bool column_registers = false;  // partial sums are in registers until the block of rows is finished; else in memory
  bool split = false;             // the only choice that depends on the number of rows, because it changes no bits
  bool wide_offsets = false;      // offsets inside a tensor need 64 bits
  int group_size() const { return team * rows_per_group; }
  int64_t block() const { return int64_t{team} * vector * steps; }
  bool operator==(const Schedule&) const = default;
};

Schedule choose_schedule(const kernel::Kernel& kernel, const DeviceLimits& limits);

// "packed", "warp", "block", "transposed", "split" or "flat", followed by "columns" if there are column sums.
const char* name_of(const Schedule& schedule);

// Whether the rows of one block stay in registers between phases.
bool is_persistent(const kernel::Kernel& kernel, const Schedule& schedule);

// The values of a row that stay in registers between phases: loads before functions, as far as the registers suffice.
kernel::LoopPolicy loop_policy(const kernel::Kernel& kernel, const Schedule& schedule);

}  // namespace lamina::gpu
