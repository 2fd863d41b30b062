// The order of summation on a GPU. It decides the bits of every result there, as kernels/numerics.h does on the CPU. It is a
// value of the kernel: inner extents, types, and which args are dense along the row. No device and no number of rows changes
// it, and no schedule does (schedule.h).
//
// A row of N elements is cut into chunks of `chunk` neighbouring elements of the innermost dim. Chunk c of a block belongs to
// lane c mod `lanes`, which adds the elements of its `steps` chunks in order. The lanes are folded in a fixed tree: distances
// 16, 8, 4, 2, 1 inside each 32 lanes, then half of the lanes, a quarter, ..., 32. A longer row has several blocks, which are
// added as pairs of floats in their order.
//
// A column sum adds `column_rows` rows in order. Partial sum b belongs to place b mod kColumnPlaces, which adds its partial
// sums as pairs in order; then the places are joined in order.
#pragma once

#include <cstdint>

#include "kernels/kernel_ir.h"

namespace lamina::gpu {

struct SumOrder {
  int chunk = 1;
  int lanes = 1;            // a power of two
  int steps = 1;            // chunks of a lane in one block
  int64_t column_rows = 0;  // 0: the kernel has no column sums
  int64_t block() const { return int64_t{lanes} * chunk * steps; }
  bool operator==(const SumOrder&) const = default;
};

inline constexpr int kColumnPlaces = 32;

// Without reductions the order is SumOrder{}.
SumOrder sum_order(const kernel::Kernel& kernel);

bool reduces(const kernel::Kernel& kernel);

int64_t blocks_of_row(const kernel::Kernel& kernel, const SumOrder& order);
// Whether both walks for mean and variance run over the whole row, which is one block.
bool is_one_block(const kernel::Kernel& kernel, const SumOrder& order);

// The number of elements of 16 bytes of the narrowest tensor that is dense along the row, halved until it divides the innermost
// extent.
int longest_chunk(const kernel::Kernel& kernel);

// The number of args whose elements of neighbouring rows are contiguous, while those of a row are far apart; and of args whose
// elements of a row are contiguous.
struct DenseArgs {
  int across_rows = 0, along_rows = 0;
};
DenseArgs dense_args(const kernel::Kernel& kernel);

// Whether most args are dense across rows.
bool rows_are_adjacent(const kernel::Kernel& kernel);

}  // namespace lamina::gpu
