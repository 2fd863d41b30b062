// How the CPU runs a kernel: the choices that change no bit of a result.
//
// `cached`: lanes are elements of a row; each phase walks the row again, out of L1 or L2. `split`, for few long rows
// and for rows that overflow the second-level cache: a row's blocks are divided among threads, phase by phase, and what the
// blocks come to is combined in their order, as one thread would. `transposed`: lanes are rows, so many at a time as a vector
// has lanes, or a few vectors; for rows whose elements do not lie side by side while those of neighbouring rows do (blocked and
// channels-last formats), and for rows too short to fill vectors or to pay for folding one, which are transposed in registers.
#pragma once

#include <string>
#include <vector>

#include "backends/cpu/schedule/caches.h"
#include "kernels/kernel_ir.h"

namespace lamina::cpu {

// The distance between the elements that two neighbouring rows have at the same position.
enum class LaneStep { none, one, other };

struct Schedule {
  int vector_bits = 512;      // width of a vector register
  int rows_per_tile = 1;      // rows that go through a phase before any of them goes through the next
  std::vector<int> streamed;  // args that are written past the caches
  bool follows_lines =
      false;              // their rows begin anywhere in a line of 64 bytes: the last walk aligns itself to the first of them
  bool realigns = false;  // the same, but the rows follow each other without a gap: whole lines are put together in registers
  int64_t strip = 0;      // columns that all rows of a tile go through in the last phase before any goes on; 0: all of them
  bool asks_first_cache = true;  // the rows to come are fetched into the first-level cache, else into the second
  bool asks_late = false;        // not for a whole tile to come: it is too much
  bool keeps_conversions =
      true;  // elements of 16 bits and fewer are converted once and kept, not in each walk: the first cache has room
  bool split = false;
  bool transposed = false;
  int rows_abreast = 1;              // only for transposed: rows of a group, a lane each
  bool whole_groups = false;         // no thread's rows ever end within one
  std::vector<LaneStep> lane_steps;  // per arg, of the last outer dim; only for transposed
};

std::string describe(const Schedule& schedule);  // all of it: a part of code caches' keys

// Rows that one partial sum of a column covers; part of the numerics, so it depends on nothing but the inner size.
inline constexpr int64_t kColumnBlockRows = 64;

// Elements from one column sum's partial sums to the next one's: each begins a line.
inline int64_t column_pitch(int64_t row_size) { return (row_size + 63) / 64 * 64; }
inline int64_t column_pitch(const kernel::Kernel& kernel) { return column_pitch(kernel.row_size()); }

// Values that a tile's rows keep between phases, at most; the second for rows side by side, in the second-level cache.
inline constexpr int64_t kKeptBytes = int64_t{24} << 10, kKeptBytesTransposed = int64_t{128} << 10;

// Whether rows have values of their own in `arg`.
bool varies_by_row(const kernel::Kernel& kernel, const kernel::Arg& arg);

// Bytes that a row reads alone, its 16-bit elements once converted, and what all rows have in common.
struct Footprint {
  int64_t read = 0, kept = 0, shared = 0;
};
Footprint footprint(const kernel::Kernel& kernel);

// A transcendental function, dear to compute.
bool computes_function(const kernel::Node& node);

// Puts the outer dim along which rows should go side by side last, if that schedule suits one of them. Column sums are taken in
// the order of rows, so where there are any the order stays.
kernel::Kernel with_rows_arranged(kernel::Kernel kernel, int vector_bits);

// `past_caches`: outputs that do not fit the caches are streamed.
Schedule choose_schedule(const kernel::Kernel& kernel, int vector_bits, bool past_caches,
                         const Caches& caches = machine_caches());

// Whether what is known once per row is computed for all rows of a tile together, a lane each: mean and variance are much to
// compute beside a short row, other reductions are not.
bool batches_rows(const kernel::Kernel& kernel);

// The same for rows whose columns are divided among threads.
Schedule split_schedule(Schedule schedule, const kernel::Kernel& kernel);

// Rows that then go through the phases together.
int64_t rows_of_group(const Footprint& bytes, int64_t row_size, int threads, const Caches& caches = machine_caches());

// Whether rows of this kernel can be divided among threads, and may gain by it: few of them, or such as overflow the cache.
bool can_split(const kernel::Kernel& kernel, const Caches& caches = machine_caches());

// Of those the ones too short for threads to reduce parts of them: each thread reduces rows of its own, and the last phase
// alone, which sums columns, is divided by columns. A few blocks of rows would else be all that many threads share.
bool reduces_whole_rows(const kernel::Kernel& kernel);

// A row, the next one and what rows share, which is most of it, leave too little of the second-level cache: half a row, with
// half of what is shared, does better.
bool overflows_cache(const Footprint& bytes, const Caches& caches = machine_caches());

// A four-bit arg of which two rows, or elements that do not follow each other, may lie in one byte. Loads and stores of it go
// half by half, and one thread runs a kernel that writes such an arg.
bool shares_bytes(const kernel::Arg& arg);

}  // namespace lamina::cpu
