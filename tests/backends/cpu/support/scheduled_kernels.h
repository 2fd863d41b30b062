// Kernels of every kind that schedules distinguish: the property of legal schedules and a benchmark run over them.
#pragma once

#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include "backends/cpu/support/kernels_of_rows.h"
#include "interface/status.h"

namespace lamina::testing {

struct ScheduledKernel {
  std::string name;
  kernel::Kernel kernel;
  friend void PrintTo(const ScheduledKernel& of, std::ostream* out) { *out << of.name; }
};

// Only mean and variance: the last walk reduces.
inline kernel::Kernel statistics(const Shape& shape) {
  Rows k("statistics", shape);
  const auto moments = k.builder().moments(k.src("src"));
  k.row_out(moments.mean, "mean");
  k.row_out(moments.variance, "variance");
  return k.finish();
}

// Sums of rows and of columns in one walk.
inline kernel::Kernel both_sums(const Shape& shape) {
  Rows k("both_sums", shape);
  const kernel::Value x = k.src("src");
  k.row_out(k.builder().reduce(kernel::Reduction::sum, x), "sum_of_row");
  k.column(x, "sum_of_column");
  return k.finish();
}

// LayerNormBackward with diff_gamma as the only output.
inline kernel::Kernel column_sums(const Shape& shape) {
  Rows k("column_sums", shape);
  k.column(k.src("diff_dst") * (k.src("src") - k.per_row("mean")) * k.per_row("rstd"), "diff_gamma");
  return k.finish();
}

// Three walks; the values of a function stay live between them.
inline kernel::Kernel softmax(const Shape& shape) {
  Rows k("softmax", shape);
  const kernel::Value x = k.src("src"), power = exp(x - k.builder().reduce(kernel::Reduction::maximum, x));
  k.out(power / k.builder().reduce(kernel::Reduction::sum, power), "dst");
  return k.finish();
}

// Extremes, and a sum that is accumulated in element order.
inline kernel::Kernel extremes(const Shape& shape) {
  Rows k("extremes", shape);
  const kernel::Value x = k.src("src");
  k.row_out(k.builder().reduce(kernel::Reduction::maximum, x), "largest");
  k.row_out(k.builder().reduce(kernel::Reduction::minimum, x), "smallest");
  k.row_out(k.builder().reduce(kernel::Reduction::sum, x), "sum");
  return k.finish();
}

inline kernel::Kernel softmax_with_sums(const Shape& shape) {
  Rows k("softmax_with_sums", shape);
  const kernel::Value x = k.src("src"), power = exp(x - k.builder().reduce(kernel::Reduction::maximum, x));
  const kernel::Value y = power / k.builder().reduce(kernel::Reduction::sum, power);
  k.out(y, "dst");
  k.column(y, "sums");
  return k.finish();
}

// Two inputs and two outputs: an early walk or the last one stores the sum.
inline kernel::Kernel add_layer_norm(const Shape& shape) {
  Rows k("add_layer_norm", shape);
  const kernel::Value sum = k.src("a") + k.src("b");
  const auto moments = k.builder().moments(sum);
  k.out(k.builder().center(sum, moments, 1.0 / sqrt(moments.variance + 1e-5)) * k.weight("gamma"), "dst");
  k.out(sum, "sum");
  return k.finish();
}

// A large body after the norm.
inline kernel::Kernel layer_norm_gelu(const Shape& shape) {
  Rows k("layer_norm_gelu", shape);
  const kernel::Value x = k.src("src");
  const auto moments = k.builder().moments(x);
  const kernel::Value y =
      fma(k.builder().center(x, moments, 1.0 / sqrt(moments.variance + 1e-5)), k.weight("gamma"), k.weight("beta"));
  k.out(k.builder().map(kernel::MapOp::gelu, y), "dst");
  return k.finish();
}

// No sums: one walk.
inline kernel::Kernel elementwise(const Shape& shape) {
  Rows k("elementwise", shape);
  k.out(k.src("src") * k.weight("gamma") + k.per_row("shift"), "dst");
  return k.finish();
}

// Per-row values of every kind, and an index.
inline kernel::Kernel row_values(const Shape& shape) {
  Rows k("row_values", shape);
  const kernel::Value scale = k.per_row("scale"), x = k.src("src") * scale;
  const auto moments = k.builder().moments(x);
  const kernel::Value rstd = 1.0 / sqrt(moments.variance + 1e-5), is_small = less(moments.variance, 1.2);
  const kernel::Value y = k.builder().center(x, moments, rstd) + abs(scale) * 0.5;
  k.out(k.builder().select(is_small, y, y * k.row_number()), "dst");
  k.row_out(k.builder().select(is_small, rstd, scale), "choice");
  k.row_out(is_small, "is_small", DataType::boolean);
  return k.finish();
}

// [groups, channels | positions] with the channels or the positions contiguous.
inline kernel::Kernel norm_of_channels(int64_t groups, int64_t channels, int64_t size, bool channels_last, DataType dtype) {
  kernel::Builder builder("norm_of_channels", {groups, channels, size}, 2);
  const Dims strides = channels_last ? Dims{channels * size, 1, channels} : Dims{channels * size, size, 1};
  const auto arg = [&](const char* name, Dims steps, bool output) {
    return builder.add_arg({.name = name, .dtype = dtype, .output = output, .strides = std::move(steps), .table = {}});
  };
  const kernel::Value x = builder.load(arg("src", strides, false)), gamma = builder.load(arg("gamma", {0, 1, 0}, false));
  const auto moments = builder.moments(x);
  builder.store(builder.center(x, moments, 1.0 / sqrt(moments.variance + 1e-5)) * gamma, arg("dst", strides, true));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

// A reduction over two dims that do not form one run.
inline kernel::Kernel norm_of_planes(int64_t images, int64_t height, int64_t width, int64_t pitch, DataType dtype) {
  kernel::Builder builder("norm_of_planes", {images, height, width}, 1);
  const auto arg = [&](const char* name, bool output) {
    return builder.add_arg(
        {.name = name, .dtype = dtype, .output = output, .strides = {height * pitch, pitch, 1}, .table = {}});
  };
  const kernel::Value x = builder.load(arg("src", false));
  const auto moments = builder.moments(x);
  builder.store(builder.center(x, moments, 1.0 / sqrt(moments.variance + 1e-5)), arg("dst", true));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

// Windows of three taps along an axis of `width` positions, each the maximum of those that exist. The channels are contiguous,
// or the positions.
inline kernel::Kernel windows(int64_t width, int64_t stride, bool channels_last, DataType dtype) {
  constexpr int64_t kImages = 5, kChannels = 70;
  const int64_t positions = (width - 1) / stride + 1, of_channel = channels_last ? 1 : width;
  const int64_t of_position = channels_last ? kChannels : 1;
  kernel::Builder builder("windows", {kImages, kChannels, positions}, 2);
  const int src = builder.add_arg({.name = "src",
                                   .dtype = dtype,
                                   .strides = {kChannels * width, of_channel, 0},
                                   .table = {},
                                   .entries = width,
                                   .entry_stride = of_position});
  const kernel::Value first = builder.index({0, 0, stride});
  kernel::Value largest;
  for (const double tap : {-1, 0, 1}) {
    const kernel::Value position = first + tap;
    const kernel::Value exists =
        builder.map(kernel::MapOp::logical_and, greater_equal(position, 0), less(position, static_cast<double>(width)));
    const kernel::Value x = builder.load_entry(src, position, exists, -4);
    largest = largest ? max(largest, x) : x;
  }
  const Dims strides = channels_last ? Dims{kChannels * positions, 1, kChannels} : Dims{kChannels * positions, positions, 1};
  builder.store(largest, builder.add_arg({.name = "dst", .dtype = dtype, .output = true, .strides = strides, .table = {}}));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

// Sums of entries, and their norm.
inline kernel::Kernel sums_of_entries(const Shape& shape) {
  constexpr int64_t kEntries = 90;
  kernel::Builder builder("sums_of_entries", {shape.rows, shape.size}, 1);
  const auto arg = [&](const char* name, DataType dtype, Dims strides, int64_t entries, int64_t entry_stride) {
    return builder.add_arg({.name = name,
                            .dtype = dtype,
                            .strides = std::move(strides),
                            .table = {},
                            .entries = entries,
                            .entry_stride = entry_stride});
  };
  const int src = arg("src", shape.dtype, {0, 1}, kEntries, shape.size), order = arg("order", DataType::s64, {0, 0}, 500, 1);
  const int begins = arg("begins", DataType::s64, {1, 0}, 2, 1);
  const kernel::Value begin = builder.load_entry(begins, builder.constant(0, kernel::Type::s64));
  const kernel::Value end = builder.load_entry(begins, builder.constant(1, kernel::Type::s64));
  const kernel::Value sum = builder.cast(builder.sum_entries(src, order, begin, end, 7), kernel::compute_type(shape.dtype));
  const auto moments = builder.moments(sum);
  builder.store(
      builder.center(sum, moments, 1.0 / sqrt(moments.variance + 1e-5)),
      builder.add_arg({.name = "dst", .dtype = shape.dtype, .output = true, .strides = {shape.size, 1}, .table = {}}));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

// The sum of `terms` rows of src that an index chooses for each row of dst; an index of the last row and above adds 0.5
// instead.
inline kernel::Kernel sums_of_chosen_rows(int64_t rows, int64_t columns, int64_t terms, DataType dtype) {
  constexpr int64_t kEntries = 20;
  kernel::Builder builder("sums_of_chosen_rows", {rows, columns, terms}, 2);
  const int places = builder.add_arg({.name = "places", .dtype = DataType::s64, .strides = {terms, 0, 1}, .table = {}});
  const int src = builder.add_arg(
      {.name = "src", .dtype = dtype, .strides = {0, 1, 0}, .table = {}, .entries = kEntries, .entry_stride = columns});
  const kernel::Value given = builder.load(places);  // from -kEntries
  const kernel::Value place = builder.select(less(given, 0), given + static_cast<double>(kEntries), given);
  const kernel::Value exists = less(place, static_cast<double>(kEntries - 1));
  const kernel::Value sum = builder.reduce(kernel::Reduction::sum, builder.load_entry(src, place, exists, 0.5));
  builder.store(sum, builder.add_arg({.name = "dst", .dtype = dtype, .output = true, .strides = {columns, 1, 0}, .table = {}}));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

// x / (1 + the sum of its row), and the sum of each segment of x * x, over rows of `segments` segments.
inline kernel::Kernel segment_sums(int64_t rows, int64_t segments, int64_t size, DataType dtype) {
  kernel::Builder builder("segment_sums", {rows, segments, size}, 1);
  const int64_t row = segments * size;
  const kernel::Value x = builder.load(builder.add_arg({.name = "x", .dtype = dtype, .strides = {row, size, 1}, .table = {}}));
  builder.segment_sum(x * x, builder.add_arg({.name = "squares", .output = true, .strides = {segments, 1, 0}, .table = {}}));
  builder.store(x / (builder.reduce(kernel::Reduction::sum, x) + 1),
                builder.add_arg({.name = "dst", .dtype = dtype, .output = true, .strides = {row, size, 1}, .table = {}}));
  kernel::Kernel kernel = builder.finish();
  kernel::simplify_dims(kernel);
  return kernel;
}

inline std::vector<ScheduledKernel> scheduled_kernels() {
  constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;
  std::vector<ScheduledKernel> all;
  const auto add = [&](const char* name, kernel::Kernel (*make)(const Shape&), const Shape& shape) {
    all.push_back({join(name, "_", shape.rows, "x", shape.size, "_", name_of(shape.dtype), shape.in_threes ? "_in_threes" : ""),
                   make(shape)});
  };
  for (const Shape& shape : {Shape{600, 61}, Shape{333, 128, bf16}, Shape{37, 1024}, Shape{67, 1021, f16}, Shape{9, 4103},
                             Shape{5, 8192, bf16}, Shape{70, 256, f64}, Shape{40, 333, f32, true}, Shape{900, 16}})
    add("layer_norm", layer_norm, shape);
  for (const Shape& shape : {Shape{600, 47}, Shape{133, 260, bf16}, Shape{67, 1024}, Shape{131, 1019}, Shape{67, 2113, bf16},
                             Shape{66, 4160}, Shape{5, 8320, f64}, Shape{30, 700, f32, true}, Shape{130, 47, f64}})
    add("backward", backward, shape);
  for (const Shape& shape : {Shape{100, 515}, Shape{6, 9000, bf16}}) add("statistics", statistics, shape);
  for (const Shape& shape : {Shape{130, 300}, Shape{67, 4100}}) add("both_sums", both_sums, shape);
  for (const Shape& shape : {Shape{130, 520, bf16}, Shape{67, 4224}}) add("column_sums", column_sums, shape);
  for (const Shape& shape : {Shape{300, 100}, Shape{37, 1037, bf16}, Shape{7, 5000}, Shape{3, 20011}})
    add("softmax", softmax, shape);
  add("softmax_with_sums", softmax_with_sums, {70, 2100});
  for (const Shape& shape : {Shape{300, 100}, Shape{900, 16, bf16}, Shape{7, 5003}}) add("extremes", extremes, shape);
  for (const Shape& shape : {Shape{100, 509}, Shape{37, 2061, bf16}, Shape{33, 2048}})
    add("add_layer_norm", add_layer_norm, shape);
  for (const Shape& shape : {Shape{100, 400}, Shape{20, 2500, f16}}) add("layer_norm_gelu", layer_norm_gelu, shape);
  for (const Shape& shape : {Shape{100, 517, bf16}, Shape{3, 20000}}) add("elementwise", elementwise, shape);
  for (const Shape& shape : {Shape{130, 461}, Shape{50, 1030, f64}}) add("row_values", row_values, shape);
  for (const Shape& shape : {Shape{100, 61}, Shape{60, 520, bf16}, Shape{7, 5003}, Shape{40, 300, f64}})
    add("sums_of_entries", sums_of_entries, shape);
  const auto add_channels = [&](const char* name, int64_t channels, int64_t size, bool channels_last, DataType dtype) {
    all.push_back(
        {join(name, "_", channels, "x", size, "_", name_of(dtype)), norm_of_channels(3, channels, size, channels_last, dtype)});
  };
  add_channels("channels_last", 128, 100, true, f32);
  add_channels("channels_last", 50, 300, true, bf16);
  add_channels("channels_last", 32, 4200, true, f64);
  add_channels("channels_first", 64, 80, false, f32);
  all.push_back({"planes_f32", norm_of_planes(40, 17, 61, 64, f32)});
  all.push_back({"planes_bf16", norm_of_planes(9, 60, 64, 64, bf16)});
  all.push_back({"sums_of_chosen_rows_f32", sums_of_chosen_rows(13, 61, 3, f32)});
  all.push_back({"sums_of_chosen_rows_bf16", sums_of_chosen_rows(30, 128, 70, bf16)});
  all.push_back({"segment_sums_f32", segment_sums(9, 5, 300, f32)});
  all.push_back({"segment_sums_bf16", segment_sums(3, 2, 5000, bf16)});
  for (const bool channels_last : {false, true})
    for (const int64_t stride : {1, 2, 3})
      for (const DataType dtype : {f32, bf16})
        all.push_back({join("windows_by_", stride, channels_last ? "_channels_last_" : "_", name_of(dtype)),
                       windows(83, stride, channels_last, dtype)});
  return all;
}

}  // namespace lamina::testing
