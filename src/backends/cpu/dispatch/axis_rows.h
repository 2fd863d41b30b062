// The rows of a tensor along one axis, in memory of any layout.
#pragma once

#include <cstddef>
#include <cstdint>

#include "backends/cpu/program/axis_program.h"

namespace lamina::cpu {

class AxisRows {
 public:
  explicit AxisRows(AxisRowsProgram program);

  int64_t count() const { return count_; }
  // From an element of a row to the next.
  int64_t step(size_t tensor) const { return program_.strides[tensor].back(); }
  // Where a row of a tensor begins.
  int64_t begin(size_t tensor, int64_t row) const;
  // From a row's first element on or, if `reverse`, from the last of its `extent` elements back.
  struct Walk {
    int64_t first, step;
  };
  Walk walk(size_t tensor, int64_t row, int64_t extent, bool reverse) const;

  // Rows that a thread takes at once, if a row takes the time of `elements` elements.
  static int64_t rows_per_unit(int64_t elements);

 private:
  AxisRowsProgram program_;
  int64_t count_ = 1;
};

}  // namespace lamina::cpu
