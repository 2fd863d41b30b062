// The text of products by matrix instructions (tensor cores) of 16-bit floats, added in f32: for matrices, and for
// convolutions.
//
// A work-group computes a tile of dst, each warp a part of it in registers. Tiles of both factors, `depth` terms at a time, are
// in local memory in chunks of 16 bytes along the factor's dense axis; copies of the next ones are under way meanwhile. An
// element's sum takes the same 16 terms at a time in the same order in every tile, so its bits depend only on its row and its
// column, provided that instructions of one warp and of four have the same bits, which tests/backends/gpu/matrix_tile_test.cpp
// shows on a device.
//
// In local memory a *line* of a tile is dense. A *panel* is up to 64 elements (128 bytes) of every line. Lines of a panel
// follow each other, and the chunks of eight neighbouring lines are permuted, so that a warp reads eight chunks at once.
// Instructions of four warps prescribe this order (the swizzle of 128 bytes).
#pragma once

#include <functional>
#include <string>

#include "backends/gpu/emit/text.h"
#include "backends/gpu/languages/language.h"
#include "backends/gpu/schedule/matrix_tile.h"
#include "interface/data_type.h"

namespace lamina::gpu {

// A thread's copies of a factor to its tile: one chunk of every `lines_apart`-th line, at the same place in all of them.
struct TileCopies {
  const char* tile = nullptr;
  int extent = 0;  // of the tile: rows or columns
  bool along_terms = true;
  int depth = 0;  // of the tile
  int lines = 0, chunks_of_line = 0, lines_apart = 0;
  int per_thread() const { return (lines + lines_apart - 1) / lines_apart; }
};

// A factor in memory. Names in its text: NAME_line, the thread's first line; NAME_first, the first element of its chunk;
// NAME_in_chunks: whether all its chunks begin at multiples of 16 bytes; in a step: done, depth: the terms before the step, and
// their number; in a copy: i, line, to, count: the copy, its line, its place in the tile, and how many of the chunk's elements
// are inside of the factor.
class MatrixFactor {
 public:
  MatrixFactor(std::string name, bool along_terms) : name_(std::move(name)), along_terms_(along_terms) {}
  virtual ~MatrixFactor() = default;
  const std::string& name() const { return name_; }
  // The dense axis is that of the terms, else that of rows or columns.
  bool along_terms() const { return along_terms_; }

  virtual void emit_start(Text& out, const TileCopies& copies) const = 0;  // before the first step
  virtual void emit_step(Text& /*out*/, const TileCopies&) const {}        // before the copies of a step
  // `in_chunks`: NAME_in_chunks is true, else it is false.
  virtual void emit_copy(Text& out, const TileCopies& copies, bool in_chunks) const = 0;
  virtual bool has_arrays() const { return false; }  // whose index is i: the loop of the copies must be unrolled
  virtual void emit_end(Text& /*out*/, const TileCopies&, int /*depth*/) const {}  // after the copies of a step

 private:
  std::string name_;
  bool along_terms_;
};

// A matrix: its text has the pointer NAME to the tile's first element.
class StridedFactor final : public MatrixFactor {
 public:
  // Strides in elements, as text.
  StridedFactor(std::string name, std::string stride, std::string stride_of_terms, bool along_terms)
      : MatrixFactor(std::move(name), along_terms), stride_(std::move(stride)), stride_of_terms_(std::move(stride_of_terms)) {}
  void emit_start(Text& out, const TileCopies& copies) const override;
  void emit_copy(Text& out, const TileCopies& copies, bool is_whole) const override;
  void emit_end(Text& out, const TileCopies& copies, int depth) const override;

 private:
  const std::string& dense() const { return along_terms() ? stride_of_terms_ : stride_; }
  const std::string& other() const { return along_terms() ? stride_ : stride_of_terms_; }

  std::string stride_, stride_of_terms_;
};

// Where the sums go. Names in its text: row, the row in the tile.
struct TileDst {
  DataType dtype = DataType::undef;
  std::string stride_of_columns;                                // as text, in elements
  std::function<void()> emit_row;                               // lines before the elements of a row
  std::function<std::string(const std::string& column)> place;  // the address of the element of a column in the tile
  std::function<std::string(const std::string& sum, const std::string& column)> value;  // what is stored there
};

// The terms of a sum, as text: from `first`, a multiple of the tile's depth ("": 0), to before `end`.
struct TermRange {
  std::string first, end;
};

// Names in the text: thread, lane; warp_down, warp_across: the place of the warp; first_row, first_column, rows, columns: as in
// product_tile.h.
class MatrixTileText {
 public:
  MatrixTileText(const MatrixTile& tile, DataType dtype, const Language& language, Text& out)
      : tile_(tile), dtype_(dtype), language_(language), out_(out) {}

  std::string place(const std::string& row_count, const std::string& column_count);
  void sum(const TermRange& terms, const MatrixFactor& left, const MatrixFactor& right);
  void store(const TileDst& dst);

 private:
  int blocks_down() const;  // of a warp, of 16 rows
  int columns_of_warp() const { return tile_.columns / tile_.warps_across; }
  TileCopies copies_of(const char* tile, int extent, const MatrixFactor& factor) const;
  void emit_place_of_copies(const TileCopies& copies, const MatrixFactor& factor);
  void emit_copies(const TileCopies& copies, const MatrixFactor& factor);
  enum class Copies { whole, in_chunks, by_elements };
  void emit_copies_of_step(const TileCopies& copies, const MatrixFactor& factor, Copies how);
  void multiply_by_warp(const MatrixFactor& left, const MatrixFactor& right);
  void multiply_by_four_warps(const MatrixFactor& left, const MatrixFactor& right);
  std::string matrices(const char* from, int extent, bool along_terms, const std::string& at, const std::string& term,
                       bool is_left) const;

  const MatrixTile& tile_;
  DataType dtype_;
  const Language& language_;
  Text& out_;
};

// The functions that a product in this tile uses.
std::string matrix_instructions_text(const Language& language, const MatrixTile& tile, DataType dtype, bool left_along_terms,
                                     bool right_along_terms);

}  // namespace lamina::gpu
