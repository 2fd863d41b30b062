// How the CPU runs a kernel: the choices that change no bit of a result.
//
// `cached`: each phase walks the row again, out of L1 or L2. `split`, for few long rows: a row's blocks are divided among threads,
// phase by phase, and what the blocks come to is combined in their order, as one thread would.
#pragma once

#include <vector>

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct Schedule {
  int vector_bits = 512;      // width of a vector register
  int rows_per_tile = 1;      // rows whose last phase shares one loop: column sums are loaded and stored once a tile
  bool non_temporal = false;  // streamed_args are written past the caches
  bool split = false;
};

// Rows that one partial sum of a column covers; part of the numerics, so it depends on nothing but the inner size.
inline constexpr int64_t kColumnBlockRows = 64;

// Elements from one column sum's partial sums to the next one's: each begins a line.
inline int64_t column_pitch(int64_t row_size) { return (row_size + 63) / 64 * 64; }
inline int64_t column_pitch(const kernel::Kernel& kernel) { return column_pitch(kernel.row_size()); }

// Values that a tile's rows keep between phases, at most.
inline constexpr int64_t kKeptBytes = int64_t{24} << 10;

Schedule choose_schedule(const kernel::Kernel& kernel, int vector_bits);

// Whether rows of this kernel can be divided among threads, and few of them may want it.
bool can_split(const kernel::Kernel& kernel);

// The element outputs that can be written past the caches: contiguous along the inner dims, and with the outer strides of the
// first one, so that where a row of the first is at a multiple of 64 bytes, so are they, if their tensors begin alike. The
// first has the smallest elements.
std::vector<int> streamed_args(const kernel::Kernel& kernel);

// Whether every row of the streamed outputs begins a line of 64 bytes when the first one does.
bool rows_share_lines(const kernel::Kernel& kernel, const std::vector<int>& streamed);

// A four-bit arg of which two rows, or elements that do not follow each other, may lie in one byte. Loads and stores of it go half
// by half, and one thread runs a kernel that writes such an arg.
bool shares_bytes(const kernel::Arg& arg);

// True when the streamed outputs do not fit the caches. Never with args of four bits: a walk that follows an output's lines begins
// at any element, theirs at an even one.
bool wants_non_temporal(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
