// The text that programs of products share. A work-group computes a tile of dst. Tiles of both factors, `depth` terms at a
// time, are in local memory in the type of the sums. Each thread accumulates per_thread_rows x per_thread_columns elements in
// registers. An element is one chain of fused multiply-adds in the order of the terms for any tile size, so its bits depend
// only on its row and its column.
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/schedule.h"
#include "backends/gpu/schedule/tuning.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

struct ProductTile {
  int side = tuning::kMatmulSide;  // a work-group has side x side threads
  int per_thread_rows = tuning::kMatmulPerThread, per_thread_columns = tuning::kMatmulPerThread;
  int depth = tuning::kMatmulDepth;       // terms in local memory at a time
  kernel::Type sums = kernel::Type::f32;  // or f64
  bool operator==(const ProductTile&) const = default;

  int group_size() const { return side * side; }
  int rows() const { return side * per_thread_rows; }
  int columns() const { return side * per_thread_columns; }
};

ProductTile choose_tile(int64_t rows, int64_t columns, kernel::Type sums, const DeviceLimits& limits);
// With more elements for each thread, if that leaves a tile for every multiprocessor: for programs whose loads need few
// registers.
ProductTile enlarged(ProductTile tile, int64_t rows, int64_t columns, int64_t products, const DeviceLimits& limits);

// The place of a work-group's tile. Its index counts tiles along a row of dst first, then along columns; returns the text of
// the rest.
std::string emit_place_of_tile(Text& out, int rows, int columns, const std::string& row_count, const std::string& column_count);

// Names in the text: `left` and `right` are the tiles in local memory, [term][row] and [term][column]; thread, tx, ty: the
// thread; first_row, first_column: of the tile; rows, columns: that are inside of dst; done, depth: the terms before those in
// local memory, and their number.
class ProductTileText {
 public:
  ProductTileText(const ProductTile& tile, Text& out) : tile_(tile), out_(out) {}

  std::string place(const std::string& row_count, const std::string& column_count);
  // `load` writes both tiles; `advance` comes after their products.
  void sum(const std::string& term_count, const std::function<void()>& load, const std::function<void()>& advance);
  // Copies to a tile. `along_terms`: neighbouring threads copy neighbouring terms, else neighbouring rows or columns. `value`
  // returns an element as an expression of `at`, the row or column in the tile, and `c`, the term; it may write lines before.
  void load_rows(bool along_terms, const std::function<std::string()>& value) const;
  void load_columns(bool along_terms, const std::function<std::string()>& value) const;
  // At each element in dst: `row` and `column` in the tile, and its sum.
  void store(const std::function<void(const std::string& sum)>& store);

 private:
  void load(const char* tile, int extent, bool along_terms, const std::function<std::string()>& value) const;
  void multiply();

  const ProductTile& tile_;
  Text& out_;
};

// The element of storage in the type of the sums, and back.
std::string loaded(DataType dtype, kernel::Type sums, const std::string& raw);
std::string stored(DataType dtype, kernel::Type sums, const std::string& value);

}  // namespace lamina::gpu
