// The text of places in a windowed contraction (kernels/windowed_contraction.h): a row or a term, the pixel of left that they
// share, and the offsets of elements.
#pragma once

#include <cstdint>
#include <string>

#include "backends/gpu/emit/text.h"
#include "kernels/windowed_contraction.h"

namespace lamina::gpu {

// " + NAME * STRIDE"; "" without a name.
std::string plus(const std::string& name, int64_t stride);
// An offset that begins with its sign, as an index.
std::string at_start(const std::string& place);
// Whether neighbouring threads copy elements that are `first` apart, so that they share memory transactions, not `second`.
bool are_neighbours(int64_t first, int64_t second);

// Names in the text: L_outer, L0, L1, ..., L_inner are the places of a row or of a term, where L is its letter: `r` for a row,
// `t` for a term.
class WindowText {
 public:
  using Contraction = kernel::WindowedContraction;
  WindowText(const Contraction& contraction, Text& out) : c_(contraction), out_(out) {}

  // Defines the places of a row or a term: outer, along the axes, inner.
  void split(const char* name, const std::string& index, bool of_rows) const;
  // The offset of the dims that are no axes.
  std::string at_outer_and_inner(int64_t kernel::WindowDim::* stride, bool of_rows) const;
  // Along axis `a`: defines the dividend and the pixel, adds the conditions that it is inside, and its offset. `at_row`: the
  // dividend's part of the row.
  void emit_pixel(size_t a, const std::string& at_row, std::string& inside, std::string& place) const;
  std::string at_row(size_t a) const;  // of emit_pixel, from the places of a row
  // The offset of left's element at a row and a term; adds the conditions that it is inside, and may write lines before.
  std::string left(std::string& inside) const;
  std::string right(const std::string& column) const;  // the offset of right's element at a term and a column

 private:
  const Contraction& c_;
  Text& out_;
};

}  // namespace lamina::gpu
