// The tile of dst that a work-group computes by matrix instructions (tensor cores), as emit/matrix_tile_text.h describes.
#pragma once

#include <cstdint>

#include "interface/data_type.h"

namespace lamina::gpu {

struct DeviceLimits;

struct MatrixTile {
  int rows = 0, columns = 0, depth = 0;  // depth: terms of the sums in local memory at a time
  int stages = 0;                        // tiles of each factor in local memory
  int warps_down = 0, warps_across = 0;  // of a work-group
  // Instructions of four warps, which read both factors from local memory (wgmma), else of one warp, which loads them to
  // registers (mma). Then warps_across is 1, and depth a line of 128 bytes.
  bool by_four_warps = false;
  bool operator==(const MatrixTile&) const = default;

  int group_size() const { return 32 * warps_down * warps_across; }
  // Work-groups of a multiprocessor, whose registers and local memory they share.
  int resident_groups() const;
  int local_bytes() const { return stages * (rows + columns) * depth * 2; }
  // Steps whose copies are under way during a step. Instructions of four warps still read the tile of the step before.
  int steps_ahead() const { return stages - (by_four_warps ? 2 : 1); }
};

// Whether these types have matrix instructions; the language has to have them too.
bool has_matrix_instructions(DataType left, DataType right);

// The time of the multiprocessor with the most tiles, if one takes `alone` where it is the only one and `of_many` among many.
// The latency that few tiles do not hide shrinks with their number.
double time_of_tiles(int64_t tiles, double alone, double of_many, const DeviceLimits& limits);

MatrixTile choose_matrix_tile(int64_t rows, int64_t columns, int64_t products, const DeviceLimits& limits);

}  // namespace lamina::gpu
