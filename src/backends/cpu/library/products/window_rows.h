// The left factor of a convolution as rows of a matrix (kernels/windowed_contraction.h). Rows of integers are made without the
// zero point, in 16 bits.
#pragma once

#include <cstdlib>
#include <memory>
#include <vector>

#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/windowed_contraction.h"

namespace lamina::cpu {

class WindowRows final : public RowSource {
 public:
  // `rows`: of a product; an entry of the batch has the next ones. Groups vary slowest.
  // `groups`: of the columns of a contraction without groups.
  WindowRows(const kernel::WindowedContraction& contraction, const ColumnGroups& groups, int64_t rows, const Machine& machine,
             int vector_bits);

  void make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_k, int64_t count, char* to,
                 int64_t to_next_row) const override;
  int64_t part() const override { return finds_lines_ ? line_ : c_.inner_terms.extent; }
  int64_t to_next_k() const override { return finds_lines_ ? bytes_ : c_.inner_terms.left * bytes_; }
  int64_t made_bytes(int64_t rows, int64_t parts) const override { return finds_lines_ ? rows * parts * line_ * bytes_ : 0; }
  void find_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_part, int64_t parts,
                 const void** to, char* made) const override;
  ColumnGroups groups() const override { return groups_; }

  // The entries of k for which pointers to the rows suffice; 0: rows are copied, because they are converted or these are few.
  static int64_t part_of(const kernel::WindowedContraction& contraction, const ColumnGroups& groups);

 private:
  // Row `index` of an entry of the batch: its place along each axis, and the first pixel.
  const char* row_at(const void* src, int64_t entry, int64_t index, int64_t* places) const;
  void find_parts(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to, int64_t step) const;
  char* find_lines(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to, int64_t step,
                   char* made) const;
  const char* line_at(const char* row, const int64_t* places, int64_t line) const;
  void make_row(const char* row, const int64_t* places, int64_t first_k, int64_t count, char* to) const;
  void make_line(const char* line, int64_t row_place, int64_t first, int64_t count, char* to) const;
  void copy(const char* from, int64_t count, char* to) const;

  kernel::WindowedContraction c_;
  ColumnGroups groups_;
  int64_t rows_, rows_per_group_;
  int64_t bytes_, row_bytes_;  // of an element of left and of a row that is made
  int64_t line_;               // terms along the last axis and the inner terms: those that vary fastest
  bool is_contiguous_;         // a line without pads is contiguous in memory
  bool finds_lines_;           // a part is a line, else the inner terms
  MatrixCopy copy_;
  // Per axis, for each row and then for each term: bytes from the first pixel; -1: there is no pixel.
  std::vector<std::vector<int64_t>> offsets_;
  std::unique_ptr<char, void (*)(void*)> zeros_;  // a part of a row outside of left
};

}  // namespace lamina::cpu
