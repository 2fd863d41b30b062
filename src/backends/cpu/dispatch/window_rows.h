// The left factor of a convolution as rows of a matrix (kernels/windowed_contraction.h). Rows of integers are made without the
// zero point, in 16 bits.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "backends/cpu/dispatch/factor_sources.h"
#include "backends/cpu/dispatch/matrix_copy.h"
#include "backends/cpu/program/program_writer.h"
#include "backends/cpu/program/window_program.h"

namespace lamina::cpu {

class WindowRows final : public RowSource {
 public:
  // `copy`: of elements of left to a row. Groups vary slowest.
  WindowRows(WindowRowsProgram program, MatrixCopy copy);
  static std::unique_ptr<const WindowRows> read(ProgramReader& from);
  void write(ProgramWriter& to) const;

  void make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_k, int64_t count, char* to,
                 int64_t to_next_row) const override;
  int64_t part() const override { return c_.finds_lines ? line_ : c_.inner_terms.extent; }
  int64_t to_next_k() const override { return c_.finds_lines ? c_.element_bytes : c_.inner_terms.left * c_.element_bytes; }
  int64_t made_bytes(int64_t rows, int64_t parts) const override {
    return c_.finds_lines ? rows * parts * line_ * c_.element_bytes : 0;
  }
  void find_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t first_part, int64_t parts,
                 const void** to, char* made) const override;
  ColumnGroups groups() const override { return c_.column_groups; }

 private:
  int64_t zero_bytes() const;
  // Row `index` of an entry of the batch: its place along each axis, and the first pixel.
  const char* row_at(const void* src, int64_t entry, int64_t index, int64_t* places) const;
  void find_parts(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to, int64_t step) const;
  char* find_lines(const char* row, const int64_t* places, int64_t first, int64_t count, const void** to, int64_t step,
                   char* made) const;
  const char* line_at(const char* row, const int64_t* places, int64_t line) const;
  void make_row(const char* row, const int64_t* places, int64_t first_k, int64_t count, char* to) const;
  void make_line(const char* line, int64_t row_place, int64_t first, int64_t count, char* to) const;
  void copy(const char* from, int64_t count, char* to) const;

  const WindowRowsProgram c_;
  int64_t rows_per_group_;
  int64_t line_;  // terms along the last axis and the inner terms: those that vary fastest
  MatrixCopy copy_;
  // Per axis, for each row and then for each term: bytes from the first pixel; -1: there is no pixel.
  std::vector<std::vector<int64_t>> offsets_;
  std::unique_ptr<char, void (*)(void*)> zeros_;  // a part of a row outside of left
};

}  // namespace lamina::cpu
