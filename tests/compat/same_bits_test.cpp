// The same data through all five forms and the descriptor interface give the same bits.
//
// infiniop receives the standardised input and the standard deviation. Its bits equal those of the other forms only if the
// standardisation is exact: mean 0.5, a variance whose sum with epsilon is 4, and inputs that are multiples of 1/64.
#include <gtest/gtest.h>

#include "dnnl.hpp"
#include "graph/layer_norm.hpp"
#include "graph_ops/graph_op_case.h"
#include "infiniop.h"

namespace graph_op_test {
namespace {

constexpr float kEpsilon = 1e-5f;

struct Gradients {
  TypedTensor diff_src, diff_gamma, diff_beta;
};

void expect_same(const Gradients& a, const Gradients& b, const char* form) {
  SCOPED_TRACE(form);
  lamina::testing::expect_same(a.diff_src, b.diff_src, "diff_src");
  lamina::testing::expect_same(a.diff_gamma, b.diff_gamma, "diff_gamma");
  lamina::testing::expect_same(a.diff_beta, b.diff_beta, "diff_beta");
}

Problem exact_problem(DataType type) {
  Problem p({100, 7, 33}, 1, type);
  for (TypedTensor* tensor : {&p.src, &p.diff_dst, &p.gamma})
    for (int64_t i = 0; i < tensor->count(); ++i) tensor->set(i, std::round(tensor->at(i) * 16) / 16);
  for (int64_t row = 0; row < p.mean.count(); ++row) {
    p.mean.set(row, 0.5);
    p.variance.set(row, static_cast<double>(4.0f - kEpsilon));
  }
  p.epsilon = kEpsilon;
  return p;
}

Gradients outputs_of(const Problem& p) { return {p.diff_src, p.diff_gamma, p.diff_beta}; }

Gradients through_layer_norm_backward(Problem p) {
  run_op(op(0, op::kind::LayerNormBackward, "norm").set_attr(op::attr::epsilon, kEpsilon),
         {&p.src, &p.diff_dst, &p.mean, &p.variance, &p.gamma, &p.beta}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  return outputs_of(p);
}

Gradients through_layer_norm_backprop(Problem p) {
  run_op(op(0, op::kind::LayerNormBackprop, "norm").set_attr(op::attr::epsilon, kEpsilon),
         {&p.src, &p.diff_dst, &p.gamma, &p.beta, &p.mean, &p.variance}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  return outputs_of(p);
}

Gradients through_layer_norm_grad(Problem p) {
  for (TypedTensor* statistic : {&p.mean, &p.variance})
    *statistic = TypedTensor(statistic->dtype, {100, 7, 1}, statistic->values());
  run_op(op(0, op::kind::LayerNormGrad, "norm").set_attr(op::attr::epsilon, kEpsilon),
         {&p.diff_dst, &p.src, &p.variance, &p.mean, &p.gamma}, {&p.diff_src, &p.diff_gamma, &p.diff_beta});
  return outputs_of(p);
}

Gradients through_primitive(Problem p) {
  using namespace dnnl;
  const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  dnnl::stream s(cpu);
  const auto flags = normalization_flags::use_scale | normalization_flags::use_shift;
  const memory::desc data(p.shape, static_cast<memory::data_type>(p.src.dtype), memory::format_tag::tnc);
  const memory::desc stat(p.leading, memory::data_type::f32, memory::format_tag::tn),
      small({33}, memory::data_type::f32, memory::format_tag::x);
  const layer_normalization_forward::primitive_desc forward(cpu, prop_kind::forward_training, data, data, stat, kEpsilon,
                                                            flags);
  const layer_normalization_backward::primitive_desc pd(cpu, prop_kind::backward, data, data, data, stat, kEpsilon, flags,
                                                        forward);
  layer_normalization_backward(pd).execute(s, {{DNNL_ARG_SRC, {data, cpu, p.src.data()}},
                                               {DNNL_ARG_DIFF_DST, {data, cpu, p.diff_dst.data()}},
                                               {DNNL_ARG_MEAN, {stat, cpu, p.mean.data()}},
                                               {DNNL_ARG_VARIANCE, {stat, cpu, p.variance.data()}},
                                               {DNNL_ARG_SCALE, {small, cpu, p.gamma.data()}},
                                               {DNNL_ARG_DIFF_SRC, {data, cpu, p.diff_src.data()}},
                                               {DNNL_ARG_DIFF_SCALE, {small, cpu, p.diff_gamma.data()}},
                                               {DNNL_ARG_DIFF_SHIFT, {small, cpu, p.diff_beta.data()}}});
  s.wait();
  return outputs_of(p);
}

Gradients through_descriptor(Problem p) {
  using arg = lamina::layer_norm::arg;
  const lamina::engine cpu(lamina::engine::kind::cpu, 0);
  const lamina::layer_norm norm(
      {.direction = lamina::layer_norm::pass::backward,
       .flags = lamina_layer_norm_use_stats | lamina_layer_norm_use_scale | lamina_layer_norm_use_shift,
       .epsilon = kEpsilon,
       .tensors = {{arg::src, describe(0, p.src)},
                   {arg::diff_dst, describe(0, p.diff_dst)},
                   {arg::diff_src, describe(0, p.diff_src)}}},
      cpu);
  norm.execute(lamina::stream(cpu), {{arg::src, p.src.data()},
                                     {arg::diff_dst, p.diff_dst.data()},
                                     {arg::mean, p.mean.data()},
                                     {arg::variance, p.variance.data()},
                                     {arg::scale, p.gamma.data()},
                                     {arg::diff_src, p.diff_src.data()},
                                     {arg::diff_scale, p.diff_gamma.data()},
                                     {arg::diff_shift, p.diff_beta.data()}});
  return outputs_of(p);
}

// Owns an infiniop object until the end of a test.
template <typename Object, infiniStatus_t (*destroy)(Object)>
struct Owned {
  Owned() = default;
  Owned(const Owned&) = delete;
  Owned& operator=(const Owned&) = delete;
  ~Owned() { destroy(object); }
  Object object = nullptr;
};

using OwnedTensor = Owned<infiniopTensorDescriptor_t, infiniopDestroyTensorDescriptor>;

void describe(const TypedTensor& tensor, OwnedTensor& descriptor) {
  const std::vector<size_t> shape(tensor.shape.begin(), tensor.shape.end());
  ASSERT_EQ(infiniopCreateTensorDescriptor(&descriptor.object, shape.size(), shape.data(), nullptr, INFINI_DTYPE_F32),
            INFINI_STATUS_SUCCESS);
}

Gradients through_infiniop(Problem p) {
  TypedTensor standardized(DataType::f32, p.shape), deviation(DataType::f32, p.leading, Values(700, 2));
  for (int64_t i = 0; i < p.src.count(); ++i) standardized.set(i, (p.src.at(i) - 0.5) / 2);
  Owned<infiniopHandle_t, infiniopDestroyHandle> handle;
  Owned<infiniopLayerNormBackwardDescriptor_t, infiniopDestroyLayerNormBackwardDescriptor> desc;
  OwnedTensor data, rows, columns;
  describe(p.src, data);
  describe(deviation, rows);
  describe(p.gamma, columns);
  EXPECT_EQ(infiniopCreateHandle(&handle.object), INFINI_STATUS_SUCCESS);
  EXPECT_EQ(infiniopCreateLayerNormBackwardDescriptor(handle.object, &desc.object, data.object, columns.object, columns.object,
                                                      data.object, columns.object, data.object, rows.object),
            INFINI_STATUS_SUCCESS);
  size_t size = 0;
  EXPECT_EQ(infiniopGetLayerNormBackwardWorkspaceSize(desc.object, &size), INFINI_STATUS_SUCCESS);
  std::vector<unsigned char> workspace(size);
  EXPECT_EQ(
      infiniopLayerNormBackward(desc.object, workspace.data(), size, p.diff_src.data(), p.diff_gamma.data(), p.diff_beta.data(),
                                p.diff_dst.data(), p.gamma.data(), standardized.data(), deviation.data(), nullptr),
      INFINI_STATUS_SUCCESS);
  return outputs_of(p);
}

TEST(AllForms, GiveTheSameBits) {
  const Problem p = exact_problem(DataType::f32);
  const Gradients expected = through_layer_norm_backward(p);
  Problem checked = p;
  checked.diff_src = expected.diff_src;
  checked.diff_gamma = expected.diff_gamma;
  checked.diff_beta = expected.diff_beta;
  checked.check();
  expect_same(through_layer_norm_backprop(p), expected, "LayerNormBackprop-1");
  expect_same(through_primitive(p), expected, "layer normalization primitive");
  expect_same(through_layer_norm_grad(p), expected, "LayerNormGrad");
  expect_same(through_infiniop(p), expected, "infiniopLayerNormBackward");
  expect_same(through_descriptor(p), expected, "lamina_layer_norm");
}

// Arbitrary data, in the forms that receive mean and variance.
TEST(AllForms, ThatTakeMeanAndVarianceGiveTheSameBitsForAnyData) {
  for (const DataType type : {DataType::f32, DataType::bf16, DataType::f16}) {
    Problem p({100, 7, 33}, 1, type, DataType::f32);
    p.epsilon = kEpsilon;
    const Gradients expected = through_layer_norm_backward(p);
    expect_same(through_layer_norm_backprop(p), expected, "LayerNormBackprop-1");
    expect_same(through_primitive(p), expected, "layer normalization primitive");
    expect_same(through_layer_norm_grad(p), expected, "LayerNormGrad");
    expect_same(through_descriptor(p), expected, "lamina_layer_norm");
  }
}

}  // namespace
}  // namespace graph_op_test
