// The tile of dst that a work-group computes in programs of products: by its threads, or by matrix instructions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "backends/gpu/emit/product_tile.h"
#include "backends/gpu/schedule/matrix_tile.h"

namespace lamina::gpu {

struct TileForm {
  ProductTile tile;
  std::optional<MatrixTile> matrix_tile;  // the product is by matrix instructions, in this tile
  int64_t segment_terms = 0;              // of such a product whose sums are divided (product_segments.h), else 0
  bool operator==(const TileForm&) const = default;

  int rows() const { return matrix_tile ? matrix_tile->rows : tile.rows(); }
  int columns() const { return matrix_tile ? matrix_tile->columns : tile.columns(); }
  int group_size() const { return matrix_tile ? matrix_tile->group_size() : tile.group_size(); }
  int resident_groups() const {  // on a multiprocessor, at least
    return matrix_tile ? matrix_tile->resident_groups() : tile.resident_groups();
  }
};

std::string describe(const TileForm& form);

}  // namespace lamina::gpu
