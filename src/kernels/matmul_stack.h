// A MatMul as a stack of plain matrix products: numpy's rank rules, the transposes and the broadcasts are worked out here, for
// every backend.
#pragma once

#include <cstdint>

#include "interface/logical_tensor.h"
#include "kernels/plan.h"

namespace lamina::kernel {

// The matrices of one tensor, in elements. What is broadcast along rows, columns or a batch dim has stride 0 there.
struct MatrixStack {
  int64_t rows = 1, columns = 1;
  int64_t row_stride = 0, column_stride = 0;
  Dims batch_strides = {};  // one per entry of MatmulStack::batch
  DataType dtype = DataType::f32;
};

// dst[b] = src[b] x weights[b] + bias[b], [m, k] x [k, n].
struct MatmulStack {
  int64_t m = 1, n = 1, k = 1;
  Dims batch = {};
  MatrixStack src = {}, weights = {}, bias = {}, dst = {};
  bool has_bias = false;

  int64_t products() const;  // entries of the batch
};

// Of a library step whose op is a MatMul.
MatmulStack matmul_stack(const LibraryStep& step);

// Of a tensor that is broadcast over that step's dst, as a bias is.
MatrixStack over_dst(const LibraryStep& step, const LogicalTensor& tensor);

// The same products with as few batch dims as strides allow: dims of one entry go, neighbours that run on into each other in
// every tensor become one, and a last one along which the rows of src, bias and dst run on, with the same weights, becomes
// rows.
MatmulStack collapsed(MatmulStack stack);

}  // namespace lamina::kernel
