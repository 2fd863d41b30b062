// The data of the reference: dense row-major tensors of double, and iteration over strided memory.
//
// A tensor keeps its values in double between ops, for any dtype in the graph. They are rounded once, when an output is
// stored. Only results that are integers, booleans or f8 (Quantize, GreaterEqual, GenIndex, the mask of Dropout) and results
// of casts are rounded and saturated at once. Integers of 64 bits are stored as integers too, because double has only 53 bits.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "backends/reference/parallel.h"
#include "interface/logical_tensor.h"

namespace lamina::reference {

struct Tensor {
  DataType dtype = DataType::undef;  // as the graph declares it
  Dims shape;
  std::vector<double> values;          // row-major
  std::vector<int64_t> integers = {};  // for tensors of long integers, in addition to `values`: their bits
  // For outputs of a run: the results that `values` contains rounded (integers, booleans, f8), before that rounding.
  std::vector<double> unrounded = {};
  // Per element, or empty: the sum of the magnitudes of the terms that the element is the sum of.
  std::vector<double> terms = {};
  // Per element, or empty: whether an intermediate value leaves the range of f32 in some order of the operations.
  std::vector<bool> out_of_range = {};

  int rank() const { return static_cast<int>(shape.size()); }
  int64_t size() const { return static_cast<int64_t>(values.size()); }
  double& operator[](int64_t index) { return values[static_cast<size_t>(index)]; }
  double operator[](int64_t index) const { return values[static_cast<size_t>(index)]; }
};

// Whether tensors of the type have `integers`.
bool is_long_integer(DataType dtype);

// The bits of an element of an integer tensor, with the sign extended to 64 bits.
uint64_t integer_at(const Tensor& tensor, int64_t index);
// Sets the element to the integer with these bits, modulo the range of the type. `integers` has its size if it is needed.
void set_integer(Tensor& tensor, int64_t index, uint64_t bits);
// Gives the tensor the `integers` that set_integer needs.
void prepare_integers(Tensor& tensor);

// A tensor of zeros with that dtype and shape.
Tensor zeros(DataType dtype, const Dims& shape);

// Copies between memory in the layout of `description` and a dense tensor. Memory may be null for a tensor without elements.
Tensor load(const LogicalTensor& description, const void* memory);
void store(const Tensor& tensor, const LogicalTensor& description, void* memory);

// Product of the extents in [first, last).
int64_t count_of(const Dims& shape, size_t first, size_t last);

// Strides that read a dense tensor of shape `from` broadcast to `to` by NumPy's rules: 0 where an extent of 1 is repeated.
Dims broadcast_strides(const Dims& from, const Dims& to);

// Iterates over the index space of `shape` in row-major order, through `strides`: offsets[k] is the dot product of the index
// and strides[k]. A row is one run along the last dim.
template <size_t Views>
class OffsetWalk {
 public:
  using Offsets = std::array<int64_t, Views>;

  OffsetWalk(const Dims& shape, const std::array<Dims, Views>& strides)
      : shape_(shape), strides_(strides), outer_(shape.empty() ? 0 : shape.size() - 1) {
    for (size_t dim = 0; dim < outer_; ++dim) rows_ *= shape[dim];
    if (shape.empty()) return;
    row_length_ = shape.back();
    for (size_t view = 0; view < Views; ++view) step_[view] = strides[view].back();
  }

  int64_t rows() const { return rows_; }
  int64_t row_length() const { return row_length_; }

  // Calls visit(offsets) for every index of rows [first, last).
  template <typename Visit>
  void visit_rows(int64_t first, int64_t last, Visit& visit) const {
    Dims index(outer_);
    Offsets start = start_of(first, index);
    for (int64_t row = first; row < last; ++row) {
      Offsets at = start;
      for (int64_t i = 0; i < row_length_; ++i) {
        visit(at);
        for (size_t view = 0; view < Views; ++view) at[view] += step_[view];
      }
      advance(index, start);
    }
  }

 private:
  Offsets start_of(int64_t row, Dims& index) const {
    Offsets start{};
    for (size_t dim = outer_; dim-- > 0;) {
      index[dim] = row % shape_[dim];
      row /= shape_[dim];
      for (size_t view = 0; view < Views; ++view) start[view] += index[dim] * strides_[view][dim];
    }
    return start;
  }
  void advance(Dims& index, Offsets& start) const {
    for (size_t dim = outer_; dim-- > 0;) {
      const bool wraps = ++index[dim] == shape_[dim];
      for (size_t view = 0; view < Views; ++view) start[view] += strides_[view][dim] * (wraps ? 1 - shape_[dim] : 1);
      if (!wraps) return;
      index[dim] = 0;
    }
  }

  const Dims& shape_;
  const std::array<Dims, Views>& strides_;
  size_t outer_;
  int64_t rows_ = 1, row_length_ = 1;
  Offsets step_{};
};

// Calls visit(offsets) for every index of `shape` in row-major order.
template <size_t Views, typename Visit>
void for_each_offset(const Dims& shape, const std::array<Dims, Views>& strides, Visit visit) {
  const OffsetWalk<Views> walk(shape, strides);
  if (walk.rows() > 0) walk.visit_rows(0, walk.rows(), visit);
}

// The same on all threads, in any order. Each visit writes to separate memory.
template <size_t Views, typename Visit>
void for_each_offset_parallel(const Dims& shape, const std::array<Dims, Views>& strides, const Visit& visit) {
  const OffsetWalk<Views> walk(shape, strides);
  const int64_t rows_each = std::max<int64_t>(1, 4096 / std::max<int64_t>(1, walk.row_length()));
  const int64_t chunks = walk.row_length() == 0 ? 0 : (walk.rows() + rows_each - 1) / rows_each;
  parallel_for(chunks, rows_each * walk.row_length(), [&](int64_t chunk) {
    walk.visit_rows(chunk * rows_each, std::min(walk.rows(), (chunk + 1) * rows_each), visit);
  });
}

}  // namespace lamina::reference
