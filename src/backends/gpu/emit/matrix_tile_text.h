// The text of products by matrix instructions (tensor cores): 16 x 8 sums of 16 terms at once, of 16-bit floats, added in f32.
//
// A work-group computes a tile of dst, each warp a part of it in registers. Tiles of both factors, `depth` terms at a time, are
// in local memory as they are in memory, in chunks of 16 bytes along the dense axis; copies of the next ones are under way
// meanwhile. An element's sum takes the same instructions in the same order in every tile, so its bits depend only on its row
// and its column.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/matrix_tile.h"
#include "interface/data_type.h"

namespace lamina::gpu {

// A factor in memory. Names in the text: its pointer `name`, and its strides in elements.
struct MatrixFactor {
  const char* name;
  std::string stride, stride_of_terms;
  bool along_terms = true;  // the dense axis is that of the terms, else that of rows or columns
};

// Names in the text: thread, lane, warp_row, warp_column: the thread; first_row, first_column, rows, columns: as in
// product_tile.h.
class MatrixTileText {
 public:
  MatrixTileText(const MatrixTile& tile, DataType dtype, Text& out) : tile_(tile), dtype_(dtype), out_(out) {}

  std::string place(const std::string& row_count, const std::string& column_count);
  void sum(const std::string& term_count, const MatrixFactor& left, const MatrixFactor& right);
  // At each element in dst: `row` and `column` in the tile, and its sum.
  void store(const std::function<void(const std::string& sum)>& store);

 private:
  int warp_rows() const { return tile_.rows / tile_.warps_down; }
  int warp_columns() const { return tile_.columns / tile_.warps_across; }
  // A thread's copies of a factor to its tile. `inside`: how many rows or columns of the tile are inside of dst. A *line* of
  // the tile is dense.
  struct Copies {
    const char *tile, *inside;
    MatrixFactor factor;
    std::string dense = {}, other = {};  // strides along a line, and from one to the next
    int extent = 0, lines = 0, chunks_of_line = 0, lines_apart = 0;
  };
  Copies copies_of(const char* tile, int extent, const char* inside, const MatrixFactor& factor) const;
  void emit_start(const Copies& copies);
  void emit_copies(const Copies& copies);
  std::string elements_from(const std::string& end, const std::string& first) const;
  void multiply(const MatrixFactor& left, const MatrixFactor& right);
  std::string matrices(const char* from, int extent, bool along_terms, const std::string& at, const std::string& term,
                       bool is_left) const;

  const MatrixTile& tile_;
  DataType dtype_;
  Text& out_;
};

}  // namespace lamina::gpu
