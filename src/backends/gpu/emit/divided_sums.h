// The text of sums that are divided among work-groups (schedule/product_segments.h). A program with such sums has two
// functions. In the first, a work-group computes the sums of one segment for a tile and writes them to scratch memory in f32;
// the second adds the segments of an element in their order, and stores the result. Nothing is atomic.
//
// Partial sums are in the order [product][segment][row][column].
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "backends/gpu/emit/emit_kernel.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/emit/matrix_tile_text.h"
#include "backends/gpu/emit/text.h"

namespace lamina::gpu {

// Extents as text. `products` is the number of matrices dst, `rest` the text of a work-group's place among these and the
// segments.
struct DividedSums {
  std::string rows, columns, products, terms;
  std::string bytes_before = "";  // of scratch memory before the partial sums, as " + BYTES"

  // Parameters after the other words.
  static std::string words() { return ", const lm_s64 segment_terms, const lm_s64 segments"; }

  // Defines first_term, end_term and `part`, where the tile's sums go. Returns the text of the place among the products.
  std::string emit_segment(Text& out, const std::string& rest) const;
  static TermRange range() { return {"first_term", "end_term"}; }
  TileDst part() const;

  // The body of the second function. Defines product, first_row, first_column and `sum` of a thread's element, before `store`.
  void emit_joining(Text& out, const std::function<void()>& store) const;
};

// Of the second function.
inline constexpr int kJoiningThreads = 128, kJoiningResident = 8;
Launch joining_launch(int64_t elements);
std::string joining_symbol(const std::string& symbol);

// The words that follow the others of a program with divided sums, else none.
std::vector<int64_t> divided_words(int64_t segment_terms, int64_t terms);
// Of the partial sums. `elements`: of all products.
size_t divided_bytes(int64_t elements, int64_t segment_terms, int64_t terms);

}  // namespace lamina::gpu
