// Plain matrix products, as many as a batch has entries.
#pragma once

#include <cstdint>

#include "interface/data_type.h"
#include "interface/logical_tensor.h"

namespace lamina::kernel {

// The matrices of one tensor. Units are elements. Strides are 0 along rows, columns and batch dims that are broadcast.
struct MatrixStack {
  int64_t rows = 1, columns = 1;
  int64_t row_stride = 0, column_stride = 0;
  Dims batch_strides = {};  // one per entry of MatmulStack::batch
  DataType dtype = DataType::f32;

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.rows), visit(self.columns), visit(self.row_stride), visit(self.column_stride), visit(self.batch_strides);
    visit(self.dtype);
  }
};

// dst[b] = src[b] x weights[b] + bias[b], [m, k] x [k, n].
struct MatmulStack {
  int64_t m = 1, n = 1, k = 1;
  Dims batch = {};
  MatrixStack src = {}, weights = {}, bias = {}, dst = {};
  bool has_bias = false;

  // The number of entries of the batch.
  int64_t products() const {
    int64_t count = 1;
    for (const int64_t extent : batch) count *= extent;
    return count;
  }

  template <typename Self, typename Visit>
  static void for_each_field(Self& self, const Visit& visit) {
    visit(self.m), visit(self.n), visit(self.k), visit(self.batch), visit(self.src), visit(self.weights), visit(self.bias);
    visit(self.dst), visit(self.has_bias);
  }
};

}  // namespace lamina::kernel
