// Shared by the tests of layer normalisation by descriptor: descriptors made from the tensors of an execution.
#pragma once

#include "api_fixture.h"
#include "graph/layer_norm.hpp"
#include "support/layer_norm_case.h"

namespace api_test {
using lamina::DataType;
using lamina::Dims;
using lamina::layer_norm;
using namespace lamina::testing;
using arg = layer_norm::arg;

inline constexpr uint32_t kStats = lamina_layer_norm_use_stats, kScale = lamina_layer_norm_use_scale,
                          kShift = lamina_layer_norm_use_shift;
inline constexpr uint32_t kNormalized = lamina_layer_norm_src_is_normalized;
inline const std::vector<DataType> kFloats = {DataType::f32, DataType::bf16, DataType::f16, DataType::f64};

inline logical_tensor describe(const TypedTensor& tensor) {
  return {0, static_cast<data_type>(tensor.dtype), tensor.shape, tensor.strides};
}

// A descriptor made from the tensors of its execution.
class Case {
 public:
  explicit Case(layer_norm::pass pass, uint32_t flags) {
    what.direction = pass;
    what.flags = flags;
  }
  TypedTensor& add(arg position, TypedTensor tensor) {
    what.tensors[position] = describe(tensor);
    return tensors_[position] = std::move(tensor);
  }
  TypedTensor& operator[](arg position) { return tensors_.at(position); }
  layer_norm create() const { return layer_norm(what, cpu_); }
  void run(const layer_norm& norm) {
    std::vector<std::byte> workspace(norm.get_workspace_size());
    std::vector<void*> memory(lamina_layer_norm_arg_count, nullptr);
    for (auto& [position, tensor] : tensors_) memory[static_cast<size_t>(position)] = tensor.data();
    error::wrap_c_api(lamina_layer_norm_execute(norm.get(), stream_.get(), memory.data(), workspace.data(), workspace.size()));
  }
  void run() { run(create()); }

  layer_norm::description what;

 private:
  std::map<arg, TypedTensor> tensors_;
  engine cpu_{engine::kind::cpu, 0};
  stream stream_{cpu_};
};

inline Values random_values(size_t count, unsigned seed) { return RandomTensor(seed).uniform(count, -2, 2); }

// f64 if any of the data has this type.
inline DataType computed_in(std::initializer_list<DataType> data) {
  return std::find(data.begin(), data.end(), DataType::f64) != data.end() ? DataType::f64 : DataType::f32;
}

inline const Dims kShape{5, 7, 33};
inline constexpr size_t kRows = 35, kColumns = 33;

// A forward case with these types; its numbers are rounded to the types of the tensors.
struct Forward {
  Forward(uint32_t flags, DataType src, DataType dst, DataType small, Dims strides = {}) : c(layer_norm::pass::forward, flags) {
    numbers.size = kColumns;
    numbers.src = c.add(arg::src, TypedTensor(src, kShape, random_values(kRows * kColumns, 1), strides)).values();
    c.add(arg::dst, TypedTensor(dst, kShape));
    if ((flags & kScale) != 0)
      numbers.scale = c.add(arg::scale, TypedTensor(small, {kColumns}, random_values(kColumns, 2))).values();
    if ((flags & kShift) != 0)
      numbers.shift = c.add(arg::shift, TypedTensor(small, {kColumns}, random_values(kColumns, 3))).values();
    if ((flags & kStats) != 0) {
      numbers.mean = c.add(arg::mean, TypedTensor(small, {5, 7}, random_values(kRows, 4))).values();
      numbers.variance = c.add(arg::variance, TypedTensor(small, {5, 7}, RandomTensor(5).uniform(kRows, 0.5, 2))).values();
    } else {
      numbers.compute_statistics();
    }
  }
  Case c;
  LayerNormNumbers numbers;
};

// A backward case with these types.
struct Backward {
  Backward(uint32_t flags, DataType src, DataType diff_dst, DataType diff_src, DataType small)
      : c(layer_norm::pass::backward, flags) {
    numbers.size = kColumns;
    numbers.src = c.add(arg::src, TypedTensor(src, kShape, random_values(kRows * kColumns, 1))).values();
    numbers.diff_dst = c.add(arg::diff_dst, TypedTensor(diff_dst, kShape, random_values(kRows * kColumns, 6))).values();
    c.add(arg::diff_src, TypedTensor(diff_src, kShape));
    if ((flags & kScale) != 0) {
      numbers.scale = c.add(arg::scale, TypedTensor(small, {kColumns}, random_values(kColumns, 2))).values();
      c.add(arg::diff_scale, TypedTensor(small, {kColumns}));
    }
    if ((flags & kShift) != 0) c.add(arg::diff_shift, TypedTensor(small, {kColumns}));
    if ((flags & kStats) != 0) {
      numbers.mean = c.add(arg::mean, TypedTensor(small, {5, 7}, random_values(kRows, 4))).values();
      numbers.variance = c.add(arg::variance, TypedTensor(small, {5, 7}, RandomTensor(5).uniform(kRows, 0.5, 2))).values();
    } else {
      numbers.compute_statistics();
    }
  }
  void check(DataType wide = DataType::f64) {
    expect_close(c[arg::diff_src], numbers.diff_src(), "diff_src", 4, wide);
    check_columns(wide);
  }
  void check_columns(DataType wide = DataType::f64) {
    if (c.what.tensors.count(arg::diff_scale) != 0)
      expect_close(c[arg::diff_scale], numbers.diff_scale(), "diff_scale", 4, wide);
    if (c.what.tensors.count(arg::diff_shift) != 0)
      expect_close(c[arg::diff_shift], numbers.diff_shift(), "diff_shift", 4, wide);
  }
  Case c;
  LayerNormNumbers numbers;
};

}  // namespace api_test
