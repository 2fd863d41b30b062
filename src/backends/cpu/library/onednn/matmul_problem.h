// A MatMul as a stack of plain matrix products. Numpy's rank rules, the transposes and the broadcasts are resolved here.
#pragma once

#include <cstdint>
#include <vector>

#include "interface/logical_tensor.h"
#include "kernels/plan.h"

namespace lamina::cpu::onednn {

// One matrix of a stack. Units are elements. Strides are 0 along rows or columns that are broadcast.
struct Matrix {
  int64_t rows = 1, columns = 1;
  int64_t row_stride = 0, column_stride = 0;
  DataType dtype = DataType::f32;

  // oneDNN can use a matrix in place if it is stored row by row or column by column.
  bool is_plain() const { return is_row_major() || (row_stride == 1 && column_stride >= rows); }
  bool is_row_major() const { return column_stride == 1 && row_stride >= columns; }
};

// dst[b] = src[b] x weights[b] + bias[b], [M, K] x [K, N]. If the weights are one matrix for the whole batch, and the layouts
// of src and dst allow it, this is one product with many rows.
struct MatmulProblem {
  int64_t m = 1, n = 1, k = 1;
  Matrix src, weights, bias, dst;
  bool has_bias = false;
  std::vector<Matrix> operands;  // of the following ops: as large as dst, a row, or one number
  // The start of each product's matrices, in elements. Products may share src or weights.
  struct Offsets {
    int64_t src, weights, bias, dst;
    std::vector<int64_t> operands;
  };
  std::vector<Offsets> products;
  std::vector<int64_t> distinct_weights;    // offsets of the distinct matrices among the weights
  std::vector<int64_t> weights_of_product;  // position in distinct_weights
};

// Whether no elements of a factor overlap, which oneDNN requires.
bool has_factors_apart(const kernel::LibraryStep& step);

MatmulProblem matmul_problem(const kernel::LibraryStep& step);

}  // namespace lamina::cpu::onednn
