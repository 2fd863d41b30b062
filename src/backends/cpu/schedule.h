// How the CPU runs a kernel: the choices that change no bit of a result.
//
// `cached`: each phase walks the row again, out of L1 or L2. `split`, for few long rows: a row's blocks are divided among threads,
// phase by phase, and what the blocks come to is combined in their order, as one thread would.
#pragma once

#include "kernels/kernel_ir.h"

namespace lamina::cpu {

struct Schedule {
  int vector_bits = 512;      // width of a vector register
  int rows_per_tile = 1;      // rows whose last phase shares one loop: column sums are loaded and stored once a tile
  bool non_temporal = false;  // element outputs are written past the caches
  bool split = false;
};

// Rows that one partial sum of a column covers; part of the numerics, so it depends on nothing but the inner size.
inline constexpr int64_t kColumnBlockRows = 64;

Schedule choose_schedule(const kernel::Kernel& kernel, int vector_bits);

// Whether rows of this kernel can be divided among threads, and few of them may want it.
bool can_split(const kernel::Kernel& kernel);

// True when every element output is contiguous, starts its rows at multiples of 64 bytes (given that its first does), and
// together the outputs do not fit the caches.
bool wants_non_temporal(const kernel::Kernel& kernel);

}  // namespace lamina::cpu
