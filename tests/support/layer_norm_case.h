// Layer normalisation for tests of the C and C++ interfaces: tensors of any type and strides, and the formulas in double.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interface/data_type.h"
#include "interface/logical_tensor.h"
#include "support/random_tensor.h"

namespace lamina::testing {

using Values = std::vector<double>;

// Elements are indexed in row-major order, independently of the strides. The gaps hold a pattern.
class TypedTensor {
 public:
  TypedTensor() = default;
  explicit TypedTensor(DataType type, Dims dims, Dims steps = {})
      : dtype(type), shape(std::move(dims)), strides(std::move(steps)) {
    if (strides.empty()) strides = dense_strides(shape);
    int64_t span = 1;
    for (size_t d = 0; d < shape.size(); ++d) span += (shape[d] - 1) * strides[d];
    memory_.resize(static_cast<size_t>(bytes_of(type, count() == 0 ? 0 : span)) / sizeof(Line) + 1);
    for (Line& line : memory_) std::fill(std::begin(line.bytes), std::end(line.bytes), kPattern);
  }
  TypedTensor(DataType type, Dims dims, const Values& values, Dims steps = {})
      : TypedTensor(type, std::move(dims), std::move(steps)) {
    for (size_t i = 0; i < values.size(); ++i) set(static_cast<int64_t>(i), values[i]);
  }

  int64_t count() const {
    int64_t product = 1;
    for (const int64_t extent : shape) product *= extent;
    return product;
  }
  double at(int64_t i) const { return load_as_double(dtype, data(), offset(i)); }
  void set(int64_t i, double value) { store_from_double(dtype, data(), offset(i), value); }
  // Returns the values after rounding to the type.
  Values values() const {
    Values all;
    for (int64_t i = 0; i < count(); ++i) all.push_back(at(i));
    return all;
  }
  void* data() { return memory_.data(); }
  const void* data() const { return memory_.data(); }

  DataType dtype = DataType::f32;
  Dims shape, strides;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr std::byte kPattern{0x5a};
  int64_t offset(int64_t i) const {
    int64_t position = 0;
    for (size_t d = shape.size(); d-- > 0;) {
      position += i % shape[d] * strides[d];
      i /= shape[d];
    }
    return position;
  }
  std::vector<Line> memory_;
};

// The formulas for rows of `size` values each; empty vectors are not used.
struct LayerNormNumbers {
  int64_t size = 1;
  double epsilon = 1e-5;
  Values src, diff_dst, scale, shift, mean, variance;

  size_t rows() const { return src.size() / static_cast<size_t>(size); }

  void compute_statistics() {
    mean.assign(rows(), 0);
    variance.assign(rows(), 0);
    for (size_t i = 0; i < src.size(); ++i) mean[row_of(i)] += src[i] / static_cast<double>(size);
    for (size_t i = 0; i < src.size(); ++i)
      variance[row_of(i)] += std::pow(src[i] - mean[row_of(i)], 2) / static_cast<double>(size);
  }
  double rstd(size_t row) const { return 1 / std::sqrt(variance[row] + epsilon); }
  double normalized(size_t i) const { return (src[i] - mean[row_of(i)]) * rstd(row_of(i)); }
  double scale_at(size_t i) const { return scale.empty() ? 1 : scale[column_of(i)]; }

  Values dst() const {
    Values result(src.size());
    for (size_t i = 0; i < src.size(); ++i) result[i] = normalized(i) * scale_at(i) + (shift.empty() ? 0 : shift[column_of(i)]);
    return result;
  }
  // The formula also holds for statistics other than those of src: it treats mean and variance as functions of src.
  Values diff_src() const {
    Values sum_g(rows(), 0), sum_gx(rows(), 0), result(src.size());
    for (size_t i = 0; i < src.size(); ++i) {
      sum_g[row_of(i)] += diff_dst[i] * scale_at(i) / static_cast<double>(size);
      sum_gx[row_of(i)] += diff_dst[i] * scale_at(i) * normalized(i) / static_cast<double>(size);
    }
    for (size_t i = 0; i < src.size(); ++i) {
      const size_t row = row_of(i);
      result[i] = rstd(row) * (diff_dst[i] * scale_at(i) - sum_g[row] - normalized(i) * sum_gx[row]);
    }
    return result;
  }
  Values diff_scale() const {
    Values result(static_cast<size_t>(size), 0);
    for (size_t i = 0; i < src.size(); ++i) result[column_of(i)] += diff_dst[i] * normalized(i);
    return result;
  }
  Values diff_shift() const {
    Values result(static_cast<size_t>(size), 0);
    for (size_t i = 0; i < src.size(); ++i) result[column_of(i)] += diff_dst[i];
    return result;
  }

 private:
  size_t row_of(size_t i) const { return i / static_cast<size_t>(size); }
  size_t column_of(size_t i) const { return i % static_cast<size_t>(size); }
};

// The largest error of one value, relative above 1: rounding to the type plus the error of a sum in f32 (or f64).
inline double tolerance_of(DataType type) {
  switch (type) {
    case DataType::f64: return 1e-12;
    case DataType::f32: return 4e-6;
    case DataType::f16: return 1.5e-3;
    case DataType::bf16: return 1e-2;
    default: return 1;  // integers: both are right for a value half way between two
  }
}

// `slack` multiplies the tolerance, for sums over many rows. `computed_in` matters if it is narrower than the result's type.
inline void expect_close(const TypedTensor& made, const Values& expected, const std::string& what, double slack = 1,
                         DataType computed_in = DataType::f64) {
  ASSERT_EQ(static_cast<size_t>(made.count()), expected.size()) << what;
  const double tolerance = slack * std::max(tolerance_of(made.dtype), tolerance_of(computed_in));
  for (size_t i = 0; i < expected.size(); ++i) {
    const double value = made.at(static_cast<int64_t>(i)), allowed = tolerance * std::max(1.0, std::abs(expected[i]));
    ASSERT_TRUE(std::abs(value - expected[i]) <= allowed)
        << what << "[" << i << "] is " << value << ", expected " << expected[i];
  }
}

// Expects the same values bit by bit; strides may differ.
inline void expect_same(const TypedTensor& a, const TypedTensor& b, const std::string& what) {
  ASSERT_EQ(a.count(), b.count()) << what;
  for (int64_t i = 0; i < a.count(); ++i) ASSERT_EQ(a.at(i), b.at(i)) << what << "[" << i << "]";
}

}  // namespace lamina::testing
