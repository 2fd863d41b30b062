// Copies panels of a product's weights from their matrix.
#pragma once

#include <cstdint>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/library/products/matrix_copy.h"
#include "backends/cpu/product/product_code.h"
#include "backends/cpu/schedule/machine.h"
#include "kernels/contraction.h"

namespace lamina::cpu {

// The type of panels whose elements are as wide as in the matrix. Pairs of bf16 are words.
DataType type_of_panels(const kernel::Contraction& contraction);

class WeightsCopy {
 public:
  WeightsCopy() = default;
  // `to`: the type of the panels.
  WeightsCopy(const kernel::Contraction& contraction, DataType to, const Machine& machine, int vector_bits);

  // The code that copies whole panels of this number of vectors; null if the matrix is contiguous along neither axis.
  // `bytes_ahead`: as in PanelCopy.
  CompiledCode code(int vectors, int64_t bytes_ahead, const Machine& machine) const;

  // Copies `entries` of k of `columns` columns to a panel of `width` columns, by `code` if it is there and the panel is whole.
  // The other columns become 0.
  void operator()(const CompiledCode& code, const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const;

  bool is_along_k() const { return matrix_.row_stride == 1 && matrix_.column_stride != 1; }

 private:
  Steps steps() const;
  void copy_pairs(const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const;

  kernel::MatrixStack matrix_;
  DataType from_ = DataType::f32, to_ = DataType::f32;  // of panels
  int64_t entries_ = 1;                                 // of k in an element
  bool multiplies_pairs_ = false;
  int32_t zero_point_ = 0;
  int vector_bits_ = 0;
  MatrixCopy convert_;  // element by element
};

}  // namespace lamina::cpu
