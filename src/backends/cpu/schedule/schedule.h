// How the CPU runs a kernel: the choices that change no bit of a result.
//
// `cached`: lanes are elements of a row; each phase walks the row again, out of L1 or L2. `split`, for few long rows
// and for rows that overflow the second-level cache: a row's blocks are divided among threads, phase by phase, and what the
// blocks come to is combined in their order, as one thread would. `transposed`: lanes are rows, so many at a time as a vector
// has lanes, or a few vectors; for rows whose elements do not lie side by side while those of neighbouring rows do (blocked and
// channels-last formats), and for rows too short to fill vectors or to pay for folding one, which are transposed in registers.
//
// A *strip* is a block of columns that all rows of a tile go through before any goes on (loop tiling across columns; "column
// block" is kept for the rows behind one partial column sum, see kernels/numerics.h).
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/schedule/machine.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The distance between the elements that two neighbouring rows have at the same position.
enum class LaneStep { none, one, other };

// A new field also goes into for_each_field.
struct Schedule {
  int vector_bits = 512;      // width of a vector register
  int rows_per_tile = 1;      // rows that go through a phase before any of them goes through the next
  std::vector<int> streamed;  // args that are written past the caches
  // Their rows begin anywhere in a line of 64 bytes: the last walk aligns itself to the first of them.
  bool follows_lines = false;
  // The same, but the rows follow each other without a gap: whole lines are put together in registers.
  bool realigns = false;
  int64_t strip = 0;                // columns of a strip in the last phase; 0: all of them
  bool prefetches_to_first = true;  // the rows to come are fetched into the first-level cache, else into the second
  bool prefetches_late = false;     // not for a whole tile to come: it is too much
  // Args of which a row is too long to be fetched before its turn: each walk asks for what it reads a little later.
  std::vector<int> prefetched_within_row;
  // Elements of 16 bits and fewer are converted once and kept, not in each walk: the first cache has room.
  bool keeps_conversions = true;
  bool split = false;
  bool transposed = false;
  int rows_per_group = 1;            // only for transposed: rows that go together, a lane each
  bool whole_groups = false;         // no thread's rows ever end within one
  std::vector<LaneStep> lane_steps;  // per arg, of the last outer dim; only for transposed

  bool operator==(const Schedule&) const = default;
};

// The fields of a schedule, once: visit(name, pointer to member).
template <typename Visit>
constexpr void for_each_field(const Visit& visit) {
  visit("vector_bits", &Schedule::vector_bits);
  visit("rows_per_tile", &Schedule::rows_per_tile);
  visit("streamed", &Schedule::streamed);
  visit("follows_lines", &Schedule::follows_lines);
  visit("realigns", &Schedule::realigns);
  visit("strip", &Schedule::strip);
  visit("prefetches_to_first", &Schedule::prefetches_to_first);
  visit("prefetches_late", &Schedule::prefetches_late);
  visit("prefetched_within_row", &Schedule::prefetched_within_row);
  visit("keeps_conversions", &Schedule::keeps_conversions);
  visit("split", &Schedule::split);
  visit("transposed", &Schedule::transposed);
  visit("rows_per_group", &Schedule::rows_per_group);
  visit("whole_groups", &Schedule::whole_groups);
  visit("lane_steps", &Schedule::lane_steps);
}

// Each field that is not as in Schedule{}: a part of code caches' keys.
std::string describe(const Schedule& schedule);

// `past_caches`: outputs that do not fit the caches are streamed. The kernel is as with_rows_arranged leaves it.
Schedule choose_schedule(const kernel::Kernel& kernel, const Machine& machine, bool past_caches);

// The same for rows whose columns are divided among threads.
Schedule split_schedule(Schedule schedule, const kernel::Kernel& kernel);

}  // namespace lamina::cpu
