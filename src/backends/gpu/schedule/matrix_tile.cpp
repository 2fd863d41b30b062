#include "backends/gpu/schedule/matrix_tile.h"

#include <algorithm>
#include <limits>

#include "backends/gpu/schedule/schedule.h"
#include "backends/gpu/schedule/tuning.h"
#include "kernels/parts.h"

namespace lamina::gpu {

double time_of_tiles(int64_t tiles, double alone, double of_many, const DeviceLimits& limits) {
  const auto rounds = static_cast<double>((tiles + limits.compute_units - 1) / limits.compute_units);
  return rounds * of_many + std::max(0.0, alone - of_many) / rounds;
}

int MatrixTile::resident_groups() const {
  return std::max(1, std::min(tuning::kThreadsOfManyRegisters / group_size(), tuning::kLocalBytes / local_bytes()));
}

bool has_matrix_instructions(DataType left, DataType right) {
  return left == right && (left == DataType::bf16 || left == DataType::f16);
}

MatrixTile choose_matrix_tile(int64_t rows, int64_t columns, int64_t products, const DeviceLimits& limits) {
  const MatrixTile* fastest = &tuning::kMatrixTiles.back();
  double least = std::numeric_limits<double>::max();
  for (const tuning::TimedTile& tile : tuning::kMatrixTiles) {
    if (tile.local_bytes() > limits.local_bytes || (tile.by_four_warps && !limits.multiplies_by_four_warps)) continue;
    const int64_t tiles = kernel::parts(rows, tile.rows) * kernel::parts(columns, tile.columns) * products;
    const double time = time_of_tiles(tiles, tile.alone, tile.of_many, limits);
    if (time >= least) continue;
    least = time;
    fastest = &tile;
  }
  return *fastest;
}

}  // namespace lamina::gpu
