// Ops of two or three tensors with NumPy broadcasting, and the bias ops.
#include <cmath>

#include "backends/reference/op_run.h"

namespace lamina::reference {
namespace {

// dst[i] = formula(a[i], b[i]), both broadcast to dst.
template <typename Formula>
void map(const OpRun& run, Formula formula) {
  const Tensor& a = run.in(0);
  const Tensor& b = run.in(1);
  Tensor& dst = run.out(0);
  const Dims from_a = broadcast_strides(a.shape, dst.shape), from_b = broadcast_strides(b.shape, dst.shape);
  for_each_offset_parallel<3>(dst.shape, {dense_strides(dst.shape), from_a, from_b},
                              [&](const auto& at) { dst[at[0]] = formula(a[at[1]], b[at[2]]); });
}

template <double (*Formula)(double, double)>
void map_by(const OpRun& run) {
  map(run, Formula);
}

double sum(double a, double b) { return a + b; }
double difference(double a, double b) { return a - b; }
double product(double a, double b) { return a * b; }
double quotient(double a, double b) { return a / b; }
// NaN wins over every number.
double maximum(double a, double b) { return a > b || std::isnan(a) ? a : b; }
double minimum(double a, double b) { return a < b || std::isnan(a) ? a : b; }
double squared_difference(double a, double b) { return (a - b) * (a - b); }
double greater_equal(double a, double b) { return a >= b ? 1 : 0; }

void select(const OpRun& run) {
  const Tensor& cond = run.in("cond");
  const Tensor& yes = run.in("src_0");
  const Tensor& no = run.in("src_1");
  Tensor& dst = run.out("dst");
  const Dims from_cond = broadcast_strides(cond.shape, dst.shape);
  const Dims from_yes = broadcast_strides(yes.shape, dst.shape), from_no = broadcast_strides(no.shape, dst.shape);
  for_each_offset_parallel<4>(dst.shape, {dense_strides(dst.shape), from_cond, from_yes, from_no},
                              [&](const auto& at) { dst[at[0]] = cond[at[1]] != 0 ? yes[at[2]] : no[at[3]]; });
}

void bias_add(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& bias = run.in("bias");
  const size_t dim = channel_dim(run, src.rank());
  const int64_t inner = count_of(src.shape, dim + 1, src.shape.size());
  Tensor& dst = run.out("dst");
  parallel_elements(src.size(), [&](int64_t i) { dst[i] = src[i] + bias[i / inner % src.shape[dim]]; });
}

void bias_add_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  const size_t dim = channel_dim(run, diff_dst.rank());
  const int64_t inner = count_of(diff_dst.shape, dim + 1, diff_dst.shape.size());
  Tensor& diff_bias = run.out("diff_bias");
  for (int64_t i = 0; i < diff_dst.size(); ++i) diff_bias[i / inner % diff_dst.shape[dim]] += diff_dst[i];
}

}  // namespace

Evaluators binary_evaluators() {
  return {{OpKind::Add, map_by<sum>},
          {OpKind::Subtract, map_by<difference>},
          {OpKind::Multiply, map_by<product>},
          {OpKind::Divide, map_by<quotient>},
          {OpKind::Maximum, map_by<maximum>},
          {OpKind::Minimum, map_by<minimum>},
          {OpKind::SquaredDifference, map_by<squared_difference>},
          {OpKind::GreaterEqual, map_by<greater_equal>},
          {OpKind::Select, select},
          {OpKind::BiasAdd, bias_add},
          {OpKind::BiasAddBackward, bias_add_backward}};
}

}  // namespace lamina::reference
