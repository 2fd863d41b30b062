// A tensor as rows: the trailing axes that a norm normalises, or one axis of a softmax, with their statistics.
#pragma once

#include <cstdint>

#include "backends/reference/op_run.h"
#include "backends/reference/tensor.h"

namespace lamina::reference {

// Element i of row r has offset (r / inner) * size * inner + i * inner + r % inner. `inner` is 1 if rows are contiguous.
struct Rows {
  int64_t count = 0;
  int64_t size = 0;
  int64_t inner = 1;

  int64_t at(int64_t row, int64_t i) const { return (row / inner) * size * inner + i * inner + row % inner; }
};

// Rows of the axes from `first_axis` to the last.
inline Rows trailing_rows(const Dims& shape, size_t first_axis) {
  return {count_of(shape, 0, first_axis), count_of(shape, first_axis, shape.size()), 1};
}

// Rows along one axis.
inline Rows axis_rows(const Dims& shape, size_t axis) {
  const int64_t inner = count_of(shape, axis + 1, shape.size());
  return {count_of(shape, 0, axis) * inner, shape[axis], inner};
}

// Offsets in a tensor with batch, channels and all other dims ("space"), according to data_format.
struct ChannelLayout {
  int64_t batch, channels, space;
  bool channels_last;

  int64_t at(int64_t n, int64_t c, int64_t s) const {
    return channels_last ? (n * space + s) * channels + c : (n * channels + c) * space + s;
  }
};

inline ChannelLayout channel_layout(const OpRun& run, const Tensor& src) {
  const size_t dim = channel_dim(run, src.rank());
  int64_t space = 1;
  for (size_t i = 1; i < src.shape.size(); ++i)
    if (i != dim) space *= src.shape[i];
  return {src.shape[0], src.shape[dim], space, dim + 1 == src.shape.size()};
}

struct Moments {
  double mean = 0, variance = 0;  // biased: divided by the number of elements
};

// The moments of element(0), ..., element(count - 1). The mean of the differences from a first mean is added to that mean.
// This corrects the rounding error of a long sum, and a constant row has a variance of exactly 0. Without elements both are
// NaN.
template <typename Element>
Moments moments_of(int64_t count, Element element) {
  const auto n = static_cast<double>(count);
  Moments moments;
  for (int64_t i = 0; i < count; ++i) moments.mean += element(i);
  moments.mean /= n;
  double rest = 0;
  for (int64_t i = 0; i < count; ++i) rest += element(i) - moments.mean;
  if (rest - rest == 0) moments.mean += rest / n;  // not for infinities, whose mean stays infinite
  long double squares = 0;  // kernels in f64 join blocks and are more accurate than a plain sum in double
  for (int64_t i = 0; i < count; ++i) {
    const double d = element(i) - moments.mean;
    squares += static_cast<long double>(d) * d;
  }
  moments.variance = static_cast<double>(squares / n);
  return moments;
}

}  // namespace lamina::reference
