// What pools and resampling do: each cell of the output is made of some cells of an input, axis by axis.
#pragma once

#include "backends/cpu/library/cells/axis_reads.h"
#include "backends/cpu/library/cells/cell_tensor.h"

namespace lamina::cpu {

struct CellPort {
  size_t arg = 0;  // of the step
  CellTensor tensor{};
};

struct CellWork {
  enum class Kind { weighted_sum, maximum, gradient_of_maximum };
  Kind kind = Kind::weighted_sum;
  CellPort input{}, output{};
  Reads reads{};  // of the output's cells in the input
  // gradient_of_maximum, which reads diff_dst: src, and what the windows, the cells of diff_dst, read there.
  CellPort image{};
  Reads windows{};

  bool has_image() const { return kind == Kind::gradient_of_maximum; }
};

}  // namespace lamina::cpu
