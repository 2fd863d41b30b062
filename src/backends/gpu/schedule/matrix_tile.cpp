#include "backends/gpu/schedule/matrix_tile.h"

#include "backends/gpu/schedule/schedule.h"
#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {

bool has_matrix_instructions(DataType left, DataType right) {
  return left == right && (left == DataType::bf16 || left == DataType::f16);
}

MatrixTile choose_matrix_tile(int64_t rows, int64_t columns, int64_t products, const DeviceLimits& limits) {
  const auto parts = [](int64_t extent, int64_t part) { return (extent + part - 1) / part; };
  for (const MatrixTile& tile : tuning::kMatrixTiles) {
    const int64_t tiles = parts(rows, tile.rows) * parts(columns, tile.columns) * products;
    if (rows > tile.rows / 2 && tiles >= limits.compute_units) return tile;
  }
  return tuning::kMatrixTiles.back();
}

}  // namespace lamina::gpu
