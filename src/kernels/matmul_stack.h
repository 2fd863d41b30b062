// A MatMul as a stack of plain matrix products. Numpy's rank rules, the transposes and the broadcasts are resolved here for
// every backend.
#pragma once

#include <cstdint>

#include "interface/logical_tensor.h"
#include "kernels/plan.h"

namespace lamina::kernel {

// The matrices of one tensor. Units are elements. Strides are 0 along rows, columns and batch dims that are broadcast.
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

// `step` must be a MatMul.
MatmulStack matmul_stack(const LibraryStep& step);

// The matrices of a tensor that is broadcast over that step's dst, as a bias is.
MatrixStack over_dst(const LibraryStep& step, const LogicalTensor& tensor);

// The same products with as few batch dims as the strides allow. Dims of one entry are removed. Neighbouring dims that are
// contiguous to each other in every tensor are merged. A last dim becomes rows if it shares the weights and continues the
// rows of src, bias and dst.
MatmulStack collapsed(MatmulStack stack);

}  // namespace lamina::kernel
