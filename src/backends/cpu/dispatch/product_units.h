// The parts of a matrix product that threads take.
#pragma once

#include <cstdint>
#include <vector>

#include "backends/cpu/program/product_program.h"

namespace lamina::cpu {

// Rows and columns of one entry of the batch. The rows are tiles of almost equal height: the first `taller` ones have
// `height` + 1 rows, the others `height`.
struct ProductUnit {
  int64_t first_row, tiles, taller, height, first_column, end_column;

  int64_t rows() const { return tiles * height + taller; }
  int64_t end_row() const { return first_row + rows(); }
  int64_t columns() const { return end_column - first_column; }
  bool is_empty() const { return tiles == 0; }
  // The number of the tile with this row of dst.
  int64_t tile_of(int64_t row) const {
    const int64_t of_taller = taller * (height + 1), here = row - first_row;
    return here < of_taller ? here / (height + 1) : taller + (here - of_taller) / height;
  }
};

// The units of an entry, in the order in which threads take them. `may_cut`: rows and panels may be cut anywhere, so that each
// thread has the same work: as many units, the last of which may be empty, with as many sums.
std::vector<ProductUnit> product_units(const ProductProgram& program, bool may_cut);

}  // namespace lamina::cpu
