// Shared by the tests of the primitive front end: memory in any format, accessed by logical position, and a case that creates
// and executes primitives as oneDNN programs do.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>

#include "dnnl.hpp"
#include "graph/lamina.h"
#include "support/failure.h"
#include "support/layer_norm_case.h"

namespace primitive_test {

using dnnl::engine;
using dnnl::layer_normalization_backward;
using dnnl::layer_normalization_forward;
using dnnl::memory;
using dnnl::normalization_flags;
using dnnl::prop_kind;
using dnnl::stream;
using namespace lamina::testing;
using dt = memory::data_type;
using tag = memory::format_tag;

inline lamina::DataType to_lamina(dt type) { return static_cast<lamina::DataType>(type); }

inline int64_t count_of(const memory::dims& dims) {
  int64_t count = 1;
  for (const int64_t extent : dims) count *= extent;
  return count;
}

// Returns the offset of the i-th element (row-major) of a tensor, in elements.
inline int64_t offset_of(const memory::desc& desc, int64_t i) {
  const memory::dims dims = desc.get_dims(), strides = desc.get_strides(), blocks = desc.get_inner_blks(),
                     idxs = desc.get_inner_idxs();
  memory::dims position(dims.size());
  for (size_t d = dims.size(); d-- > 0;) {
    position[d] = i % dims[d];
    i /= dims[d];
  }
  int64_t offset = 0, inner_stride = 1;
  for (size_t b = blocks.size(); b-- > 0;) {
    int64_t& along = position[static_cast<size_t>(idxs[b])];
    offset += along % blocks[b] * inner_stride;
    along /= blocks[b];
    inner_stride *= blocks[b];
  }
  for (size_t d = 0; d < dims.size(); ++d) offset += position[d] * strides[d];
  return offset;
}

// Returns the values after rounding to the memory's type.
inline Values fill(const memory& m, const Values& values) {
  const memory::desc desc = m.get_desc();
  Values stored;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t offset = offset_of(desc, static_cast<int64_t>(i));
    lamina::store_from_double(to_lamina(desc.get_data_type()), m.get_data_handle(), offset, values[i]);
    stored.push_back(lamina::load_as_double(to_lamina(desc.get_data_type()), m.get_data_handle(), offset));
  }
  return stored;
}

inline Values read(const memory& m) {
  const memory::desc desc = m.get_desc();
  Values values;
  for (int64_t i = 0; i < count_of(desc.get_dims()); ++i)
    values.push_back(lamina::load_as_double(to_lamina(desc.get_data_type()), m.get_data_handle(), offset_of(desc, i)));
  return values;
}

inline void expect_close(const Values& made, const Values& expected, dt type, const std::string& what, double slack = 1) {
  ASSERT_EQ(made.size(), expected.size()) << what;
  const double tolerance =
      slack * std::max(lamina::testing::tolerance_of(lamina::DataType::f32), lamina::testing::tolerance_of(to_lamina(type)));
  for (size_t i = 0; i < made.size(); ++i)
    ASSERT_TRUE(std::abs(made[i] - expected[i]) <= tolerance * std::max(1.0, std::abs(expected[i])))
        << what << "[" << i << "] is " << made[i] << ", expected " << expected[i];
}

inline bool has(normalization_flags flags, normalization_flags flag) { return (flags & flag) != normalization_flags::none; }

inline const normalization_flags kNone = normalization_flags::none, kScale = normalization_flags::use_scale,
                                 kShift = normalization_flags::use_shift, kGlobal = normalization_flags::use_global_stats;
inline const std::vector<normalization_flags> kAllFlags = {
    kNone, kGlobal, kScale, kShift, kScale | kShift, kGlobal | kScale, kGlobal | kShift, kGlobal | kScale | kShift};

struct Case {
  explicit Case(memory::dims shape) : dims(std::move(shape)) {
    src = {dims, dt::f32, plain()};
    dst = {dims, dt::f32, plain()};
    numbers.size = dims.back();
    numbers.epsilon = 1e-5;
    rows = static_cast<size_t>(count_of(dims) / dims.back());
    columns = static_cast<size_t>(dims.back());
  }
  tag plain() const {
    constexpr tag tags[] = {tag::undef, tag::a, tag::ab, tag::abc, tag::abcd, tag::abcde, tag::abcdef};
    return tags[dims.size()];
  }

  // All formats and types use the same random data, up to rounding.
  void run_forward(prop_kind kind, normalization_flags flags, bool in_place = false) {
    const auto pd = stat.is_zero() ? layer_normalization_forward::primitive_desc(cpu, kind, src, dst, 1e-5f, flags, attr)
                                   : layer_normalization_forward::primitive_desc(cpu, kind, src, dst, stat, 1e-5f, flags, attr);
    args.clear();
    numbers.scale.clear();
    numbers.shift.clear();
    numbers.src = add(DNNL_ARG_SRC, pd.src_desc(), RandomTensor(1).uniform(rows * columns, -2, 2));
    if (has(flags, kScale)) numbers.scale = add(DNNL_ARG_SCALE, pd.weights_desc(), RandomTensor(2).uniform(columns, -2, 2));
    if (has(flags, kShift)) numbers.shift = add(DNNL_ARG_SHIFT, pd.weights_desc(), RandomTensor(3).uniform(columns, -2, 2));
    if (has(flags, kGlobal))
      add_statistics(pd.mean_desc(), pd.variance_desc());
    else
      numbers.compute_statistics();
    if (kind == prop_kind::forward_training && !has(flags, kGlobal)) {
      add(DNNL_ARG_MEAN, pd.mean_desc(), {});
      add(DNNL_ARG_VARIANCE, pd.variance_desc(), {});
    }
    if (in_place)
      args[DNNL_ARG_DST] = args[DNNL_ARG_SRC];
    else
      add(DNNL_ARG_DST, pd.dst_desc(), {});
    layer_normalization_forward(pd).execute(s, args);
    s.wait();
  }

  void run_backward(prop_kind kind, normalization_flags flags, bool in_place = false) {
    run_backward(kind, flags, diff_src.is_zero() ? src : diff_src, dst, in_place);
  }
  void run_backward(prop_kind kind, normalization_flags flags, const memory::desc& diff_src_desc,
                    const memory::desc& diff_dst_desc, bool in_place = false) {
    const layer_normalization_forward::primitive_desc hint(cpu, prop_kind::forward_training, src,
                                                           memory::desc(dims, src.get_data_type(), tag::any), 1e-5f, flags);
    using pd_type = layer_normalization_backward::primitive_desc;
    const auto pd = stat.is_zero() ? pd_type(cpu, kind, diff_src_desc, diff_dst_desc, src, 1e-5f, flags, hint, attr)
                                   : pd_type(cpu, kind, diff_src_desc, diff_dst_desc, src, stat, 1e-5f, flags, hint, attr);
    args.clear();
    numbers.scale.clear();
    numbers.src = add(DNNL_ARG_SRC, pd.src_desc(), RandomTensor(1).uniform(rows * columns, -2, 2));
    numbers.diff_dst = add(DNNL_ARG_DIFF_DST, pd.diff_dst_desc(), RandomTensor(6).uniform(rows * columns, -2, 2));
    add_statistics(pd.mean_desc(), pd.variance_desc());
    if (has(flags, kScale)) {
      numbers.scale = add(DNNL_ARG_SCALE, pd.weights_desc(), RandomTensor(2).uniform(columns, -2, 2));
      add(DNNL_ARG_DIFF_SCALE, pd.diff_weights_desc(), {});
    }
    if (has(flags, kShift)) add(DNNL_ARG_DIFF_SHIFT, pd.diff_weights_desc(), {});
    if (in_place)
      args[DNNL_ARG_DIFF_SRC] = args[DNNL_ARG_DIFF_DST];
    else
      add(DNNL_ARG_DIFF_SRC, pd.diff_src_desc(), {});
    layer_normalization_backward(pd).execute(s, args);
    s.wait();
  }

  Values out(int index) const { return read(args.at(index)); }
  void expect_forward() { expect_close(out(DNNL_ARG_DST), numbers.dst(), dst.get_data_type(), "dst"); }
  void expect_backward(normalization_flags flags) {
    expect_close(out(DNNL_ARG_DIFF_SRC), has(flags, kGlobal) ? gradient_through_constants() : numbers.diff_src(),
                 args.at(DNNL_ARG_DIFF_SRC).get_desc().get_data_type(), "diff_src", 4);
    if (has(flags, kScale)) expect_close(out(DNNL_ARG_DIFF_SCALE), numbers.diff_scale(), dt::f32, "diff_scale", 8);
    if (has(flags, kShift)) expect_close(out(DNNL_ARG_DIFF_SHIFT), numbers.diff_shift(), dt::f32, "diff_shift", 8);
  }

  memory::dims dims;
  memory::desc src, dst, diff_src, stat;
  dnnl::primitive_attr attr;
  std::unordered_map<int, memory> args;
  LayerNormNumbers numbers;
  size_t rows, columns;
  engine cpu{engine::kind::cpu, 0};
  stream s{cpu};

 private:
  Values add(int index, const memory::desc& desc, const Values& values) {
    args[index] = memory(desc, cpu);
    return fill(args[index], values);
  }
  void add_statistics(const memory::desc& mean, const memory::desc& variance) {
    numbers.mean = add(DNNL_ARG_MEAN, mean, RandomTensor(4).uniform(rows, -1, 1));
    numbers.variance = add(DNNL_ARG_VARIANCE, variance, RandomTensor(5).uniform(rows, 0.5, 2));
  }
  Values gradient_through_constants() const {
    Values result;
    for (size_t i = 0; i < numbers.src.size(); ++i)
      result.push_back(numbers.diff_dst[i] * numbers.scale_at(i) * numbers.rstd(i / columns));
    return result;
  }
};

using Failure = lamina::testing::Failure<dnnl_status_t>;

// Returns the failure that `body` throws, and checks that its message is lamina's last error.
inline Failure failure_of(const std::function<void()>& body) {
  return failure_by<dnnl::error>([&] {
    try {
      body();
    } catch (const dnnl::error& error) {
      EXPECT_STREQ(error.message, error.what());
      EXPECT_STREQ(lamina_last_error(), error.what());
      throw;
    }
  });
}

}  // namespace primitive_test
