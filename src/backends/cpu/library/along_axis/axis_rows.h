// The rows of a tensor along one axis, in memory of any layout.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/logical_tensor.h"

namespace lamina::cpu {

// The rows of several tensors whose shapes differ along `axis` only. All strides are in elements.
class AxisRows {
 public:
  // The tensors have shapes and strides.
  AxisRows(std::vector<const LogicalTensor*> tensors, int axis);

  int64_t count() const { return count_; }
  // From an element of a row to the next.
  int64_t step(size_t tensor) const { return strides_[tensor].back(); }
  // Where a row of a tensor begins.
  int64_t begin(size_t tensor, int64_t row) const;

  // Rows that a thread takes at once, if a row takes the time of `elements` elements.
  static int64_t rows_per_unit(int64_t elements);

 private:
  Dims shape_;                 // of the other axes
  std::vector<Dims> strides_;  // of the other axes, then of the axis itself
  int64_t count_ = 1;
};

}  // namespace lamina::cpu
