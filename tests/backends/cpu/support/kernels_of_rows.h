// Hand-built kernels of rows for the tests of schedules: LayerNorm and its backward.
#pragma once

#include <utility>

#include "kernels/builder.h"
#include "kernels/dims.h"

namespace lamina::testing {

// [rows | size], or [rows, 3 | size] with a gap after every three rows.
struct Shape {
  int64_t rows, size;
  DataType dtype = DataType::f32;
  bool in_threes = false;
};

class Rows {
 public:
  Rows(const char* name, const Shape& shape) : s_(shape), builder_(name, extents(), shape.in_threes ? 2 : 1) {}

  kernel::Value src(const char* name) { return builder_.load(arg(name, element_strides(), s_.dtype, false)); }
  kernel::Value weight(const char* name) {
    return builder_.load(arg(name, s_.in_threes ? Dims{0, 0, 1} : Dims{0, 1}, row_type(), false));
  }
  kernel::Value per_row(const char* name) { return builder_.load(arg(name, row_strides(), row_type(), false)); }
  void out(kernel::Value value, const char* name) { builder_.store(value, arg(name, element_strides(), s_.dtype, true)); }
  void row_out(kernel::Value value, const char* name, DataType dtype) {
    builder_.store(value, arg(name, row_strides(), dtype, true));
  }
  void row_out(kernel::Value value, const char* name) { row_out(value, name, row_type()); }
  void column(kernel::Value value, const char* name) {
    builder_.column_sum(value, builder_.add_arg({.name = name,
                                                 .dtype = row_type(),
                                                 .output = true,
                                                 .column = true,
                                                 .strides = s_.in_threes ? Dims{0, 0, 1} : Dims{0, 1},
                                                 .table = {}}));
  }
  kernel::Value row_number() {
    return builder_.cast(builder_.index(s_.in_threes ? Dims{3, 1, 0} : Dims{1, 0}),
                         row_type() == DataType::f64 ? kernel::Type::f64 : kernel::Type::f32);
  }
  kernel::Builder& builder() { return builder_; }
  kernel::Kernel finish() {
    kernel::Kernel kernel = builder_.finish();
    kernel::simplify_dims(kernel);
    return kernel;
  }

 private:
  Dims extents() const { return s_.in_threes ? Dims{s_.rows, 3, s_.size} : Dims{s_.rows, s_.size}; }
  Dims element_strides() const { return s_.in_threes ? Dims{3 * s_.size + 5, s_.size, 1} : Dims{s_.size, 1}; }
  Dims row_strides() const { return s_.in_threes ? Dims{4, 1, 0} : Dims{1, 0}; }
  DataType row_type() const { return s_.dtype == DataType::f64 ? DataType::f64 : DataType::f32; }
  int arg(const char* name, Dims strides, DataType dtype, bool output) {
    return builder_.add_arg({.name = name, .dtype = dtype, .output = output, .strides = std::move(strides), .table = {}});
  }

  Shape s_;
  kernel::Builder builder_;
};

// `Shaped` determines the memory layout of src, weights and per-row values.
template <typename Shaped>
kernel::Kernel layer_norm_of(Shaped k) {
  const kernel::Value x = k.src("src");
  const auto moments = k.builder().moments(x);
  const kernel::Value rstd = 1.0 / sqrt(moments.variance + 1e-5);
  k.out(fma(k.builder().center(x, moments, rstd), k.weight("gamma"), k.weight("beta")), "dst");
  k.row_out(moments.mean, "mean");
  k.row_out(moments.variance, "variance");
  return k.finish();
}

inline kernel::Kernel layer_norm(const Shape& shape) { return layer_norm_of(Rows("layer_norm", shape)); }

// LayerNorm's backward that computes its own statistics.
inline kernel::Kernel backward(const Shape& shape) {
  Rows k("backward", shape);
  const kernel::Value x = k.src("src"), dy = k.src("diff_dst"), weighted = dy * k.weight("gamma");
  const auto moments = k.builder().moments(x);
  const kernel::Value normal = k.builder().center(x, moments, 1.0 / sqrt(moments.variance + 1e-5));
  const kernel::Value sum = k.builder().reduce(kernel::Reduction::sum, weighted),
                      product = k.builder().reduce(kernel::Reduction::sum, weighted * normal);
  k.out(weighted - sum - normal * product, "diff_src");
  k.column(dy * normal, "diff_gamma");
  k.column(dy, "diff_beta");
  return k.finish();
}

}  // namespace lamina::testing
