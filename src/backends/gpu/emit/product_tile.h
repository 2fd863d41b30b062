// The text that programs of products share. A work-group computes a tile of dst. Tiles of both factors, `depth` terms at a
// time, are in local memory in the type of the sums. Each thread accumulates per_thread_rows x per_thread_columns elements in
// registers, and loads its part of the next tiles to registers meanwhile. An element is one chain of fused multiply-adds in the
// order of the terms for any tile size, so its bits depend only on its row and its column.
#pragma once

#include <algorithm>
#include <functional>
#include <string>

#include "backends/gpu/emit/text.h"
#include "backends/gpu/schedule/schedule.h"
#include "backends/gpu/schedule/tuning.h"
#include "kernels/kernel_ir.h"

namespace lamina::gpu {

struct ProductTile {
  int threads_down = tuning::kMatmulSide, threads_across = tuning::kMatmulSide;  // of a work-group
  int per_thread_rows = tuning::kMatmulPerThread, per_thread_columns = tuning::kMatmulPerThread;
  int depth = tuning::kMatmulDepth;       // terms in local memory at a time
  kernel::Type sums = kernel::Type::f32;  // or f64
  int resident = 0;                       // work-groups of a multiprocessor, at least; 0: as many as many registers allow
  // Tiles of each factor in local memory: with two, a step has one barrier.
  int stages = 1;
  bool operator==(const ProductTile&) const = default;

  int group_size() const { return threads_down * threads_across; }
  int resident_groups() const { return std::max(1, resident != 0 ? resident : tuning::kThreadsOfManyRegisters / group_size()); }
  int rows() const { return threads_down * per_thread_rows; }
  int columns() const { return threads_across * per_thread_columns; }
};

// `most_elements`: of a thread.
ProductTile choose_tile(int64_t rows, int64_t columns, int64_t products, kernel::Type sums, int most_elements,
                        const DeviceLimits& limits);
ProductTile product_tile_of(const tuning::TimedProductTile& timed);

// The place of a work-group's tile. Its index counts tiles along a row of dst first, then along columns; returns the text of
// the rest.
std::string emit_place_of_tile(Text& out, int rows, int columns, const std::string& row_count, const std::string& column_count);

// Names in the text: `left` and `right` are the tiles in local memory, [term][row] and [term][column]; thread, tx, ty: the
// thread; first_row, first_column: of the tile; rows, columns: that are inside of dst; done, depth: the terms before those that
// are loaded, and their number.
class ProductTileText {
 public:
  ProductTileText(const ProductTile& tile, Text& out) : tile_(tile), out_(out) {}

  std::string place(const std::string& row_count, const std::string& column_count);
  // A factor. `along_terms`: neighbouring threads load neighbouring terms, else neighbouring rows or columns. `value` returns
  // an element as an expression of `at`, the row or column in the tile, and `c`, the term; it may write lines before.
  struct Factor {
    bool along_terms;
    std::function<std::string()> value;
  };
  // `advance` comes after the loads of a tile.
  void sum(const std::string& term_count, const Factor& left, const Factor& right, const std::function<void()>& advance);
  // At each element in dst: `row` and `column` in the tile, and its sum.
  void store(const std::function<void(const std::string& sum)>& store);

 private:
  // A thread's items of a tile: at each, `body` with its number `i`, and `at` and `c` as above.
  void for_items(int extent, bool along_terms, const std::function<void()>& body) const;
  std::string unrolling() const;
  void multiply();
  // The row or column of a thread's element `i`: elements that are neighbours in the tile are read together.
  static std::string place_of(const char* i, const char* thread, int threads, int per_thread);
  std::string at_stage(const char* stage, int extent, int per_thread) const;

  const ProductTile& tile_;
  Text& out_;
};

// The element of storage in the type of the sums, and back.
std::string loaded(DataType dtype, kernel::Type sums, const std::string& raw);
std::string stored(DataType dtype, kernel::Type sums, const std::string& value);

}  // namespace lamina::gpu
