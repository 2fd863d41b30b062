// Tiles of matrices from one layout to another of the same type, on one thread.
#pragma once

#include "backends/cpu/library/onednn/matmul_problem.h"
#include "backends/cpu/library/onednn/primitive_call.h"

namespace lamina::cpu::onednn {

// oneDNN's description of `rows` rows and `columns` columns of a matrix.
dnnl::memory::desc tile_desc(const Matrix& matrix, int64_t rows, int64_t columns);

class TileCopy {
 public:
  TileCopy() = default;
  TileCopy(const Matrix& from, const Matrix& to, int64_t rows, int64_t columns);

  explicit operator bool() const { return rows_ > 0; }
  size_t scratch_bytes() const { return reorder_ ? reorder_.scratch_bytes() : 0; }
  void run(const void* from, void* to, void* scratch) const;

 private:
  int64_t rows_ = 0;
  size_t row_bytes_ = 0;  // for rows that are contiguous on both sides
  int64_t from_stride_ = 0, to_stride_ = 0;
  PrimitiveCall reorder_;  // for all others
};

}  // namespace lamina::cpu::onednn
