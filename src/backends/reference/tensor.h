// What the reference works on: dense row-major tensors of double, and walks over strided memory.
//
// A tensor keeps its values in double between ops, whatever dtype the graph gives it: rounding happens once, when an output is
// stored. Only a result that is an integer, a boolean or an f8 (Quantize, GreaterEqual, GenIndex, the mask of Dropout) is
// rounded and saturated where it is made. s64 values are kept as they are, because double holds only 53 bits.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "interface/logical_tensor.h"

namespace lamina::reference {

struct Tensor {
  DataType dtype = DataType::undef;  // as the graph declares it
  Dims shape;
  std::vector<double> values;     // row-major
  std::vector<int64_t> integers;  // of s64 tensors, besides `values`

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  double& operator[](int64_t index) { return values[static_cast<size_t>(index)]; }
  double operator[](int64_t index) const { return values[static_cast<size_t>(index)]; }
};

// All zero, of that dtype and shape.
Tensor zeros(DataType dtype, const Dims& shape);

// Between memory as `description` lays it out and a dense tensor. Memory may be null for a tensor without elements.
Tensor load(const LogicalTensor& description, const void* memory);
void store(const Tensor& tensor, const LogicalTensor& description, void* memory);

// Product of the extents in [first, last).
int64_t count_of(const Dims& shape, size_t first, size_t last);

// Strides that read a dense tensor of shape `from` as if NumPy had broadcast it to `to`: 0 where an extent of 1 is repeated.
Dims broadcast_strides(const Dims& from, const Dims& to);

// Calls visit(offsets) for every index of `shape` in row-major order; offsets[k] is the dot product of index and strides[k].
template <size_t Views, typename Visit>
void for_each_offset(const Dims& shape, const std::array<Dims, Views>& strides, Visit visit) {
  for (const int64_t extent : shape)
    if (extent == 0) return;
  Dims index(shape.size(), 0);
  std::array<int64_t, Views> offsets{};
  while (true) {
    visit(offsets);
    size_t dim = shape.size();
    while (dim > 0 && ++index[dim - 1] == shape[dim - 1]) {
      --dim;
      for (size_t view = 0; view < Views; ++view) offsets[view] -= strides[view][dim] * (shape[dim] - 1);
      index[dim] = 0;
    }
    if (dim == 0) return;
    for (size_t view = 0; view < Views; ++view) offsets[view] += strides[view][dim - 1];
  }
}

}  // namespace lamina::reference
