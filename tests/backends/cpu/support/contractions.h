// Products for tests: contractions of dense matrices, in any layout of the factors.
#pragma once

#include "interface/data_type.h"
#include "kernels/contraction.h"

namespace lamina::testing {

struct FactorLayout {
  bool src_along_k = true, weights_along_k = false, dst_along_columns = true;
  int64_t gap = 0;  // elements between rows
};

inline kernel::MatrixStack stack_of(int64_t rows, int64_t columns, bool along_columns, int64_t gap, const Dims& batch,
                                    bool is_broadcast, DataType dtype) {
  kernel::MatrixStack matrix{
      rows, columns, along_columns ? columns + gap : 1, along_columns ? 1 : rows + gap, Dims(batch.size(), 0), dtype};
  int64_t stride = (rows + gap) * (columns + gap);
  for (size_t d = batch.size(); d-- > 0 && !is_broadcast; stride *= batch[d]) matrix.batch_strides[d] = stride;
  return matrix;
}

inline kernel::Contraction contraction_of(int64_t m, int64_t k, int64_t n, DataType dtype, const FactorLayout& layout,
                                          const Dims& batch = {}, bool has_weights_per_entry = false) {
  kernel::Contraction c;
  c.matrices.m = m, c.matrices.k = k, c.matrices.n = n;
  c.matrices.batch = batch;
  c.matrices.src = stack_of(m, k, layout.src_along_k, layout.gap, batch, false, dtype);
  c.matrices.weights = stack_of(k, n, !layout.weights_along_k, layout.gap, batch, !has_weights_per_entry, dtype);
  c.matrices.dst = stack_of(m, n, layout.dst_along_columns, layout.gap, batch, false, dtype);
  c.matrices.bias = kernel::MatrixStack{.batch_strides = Dims(batch.size(), 0), .dtype = dtype};
  return c;
}

}  // namespace lamina::testing
