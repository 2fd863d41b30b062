#include "backends/cpu/library/onednn/tile_copy.h"

#include <cstring>

namespace lamina::cpu::onednn {

dnnl::memory::desc tile_desc(const Matrix& matrix, int64_t rows, int64_t columns) {
  // The stride of a single row is unused. The dense one gives oneDNN's fastest code.
  const bool is_row = rows == 1 && matrix.column_stride == 1;
  return {{rows, columns}, type_of(matrix.dtype), {is_row ? columns : matrix.row_stride, matrix.column_stride}};
}

TileCopy::TileCopy(const Matrix& from, const Matrix& to, int64_t rows, int64_t columns) : rows_(rows) {
  if (from.column_stride == 1 && to.column_stride == 1) {
    row_bytes_ = static_cast<size_t>(bytes_of(from.dtype, columns));
    from_stride_ = bytes_of(from.dtype, from.row_stride), to_stride_ = bytes_of(to.dtype, to.row_stride);
  } else {
    reorder_ = copy(tile_desc(from, rows, columns), tile_desc(to, rows, columns));
  }
}

void TileCopy::run(const void* from, void* to, void* scratch) const {
  if (reorder_) return reorder_.run({const_cast<void*>(from), to}, scratch);
  for (int64_t row = 0; row < rows_; ++row)
    std::memcpy(offset(to, row * to_stride_), offset(from, row * from_stride_), row_bytes_);
}

}  // namespace lamina::cpu::onednn
