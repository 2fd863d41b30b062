// SoftMax, LogSoftmax and their gradients along one axis.
#include <cmath>
#include <limits>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "interface/op_schema.h"

namespace lamina::reference {
namespace {

Rows rows_along_axis(const OpRun& run, const Tensor& tensor) {
  return axis_rows(tensor.shape, static_cast<size_t>(wrap_axis(run.attribute<int64_t>("axis"), tensor.rank())));
}

// The largest element and the sum of e^(x - max). For a row of only -inf no shift is meaningful; `inf_as_zero` uses 0.
struct Exponentials {
  double max = -std::numeric_limits<double>::infinity();
  double shift = 0;
  double sum = 0;
};

Exponentials exponentials(const Tensor& src, const Rows& rows, int64_t row, bool inf_as_zero) {
  Exponentials e;
  for (int64_t i = 0; i < rows.size; ++i) {
    const double x = src[rows.at(row, i)];
    if (x > e.max || std::isnan(x)) e.max = x;
  }
  const bool all_masked = inf_as_zero && std::isinf(e.max) && e.max < 0;
  e.shift = all_masked ? 0 : e.max;
  for (int64_t i = 0; i < rows.size; ++i) e.sum += std::exp(src[rows.at(row, i)] - e.shift);
  return e;
}

// stats = max + ln(sum of e^(src - max)), so that dst = e^(src - stats). With mode inf_as_zero, a row of only -inf gets
// zeros, and stats of 0. Then e^(src - stats) is 0 like dst; stats of -inf would make it NaN.
void softmax(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Rows rows = rows_along_axis(run, src);
  const bool inf_as_zero = run.attribute<std::string>("mode") == "inf_as_zero";
  Tensor& dst = run.out("dst");
  Tensor* stats = run.wants("stats") ? &run.out("stats") : nullptr;
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    const Exponentials e = exponentials(src, rows, row, inf_as_zero);
    const bool all_masked = inf_as_zero && e.sum == 0;
    for (int64_t i = 0; i < rows.size; ++i)
      dst[rows.at(row, i)] = all_masked ? 0 : std::exp(src[rows.at(row, i)] - e.shift) / e.sum;
    if (stats != nullptr) (*stats)[row] = all_masked ? 0 : e.max + std::log(e.sum);
  });
}

void log_softmax(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Rows rows = rows_along_axis(run, src);
  Tensor& dst = run.out("dst");
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    const Exponentials e = exponentials(src, rows, row, false);
    for (int64_t i = 0; i < rows.size; ++i) dst[rows.at(row, i)] = src[rows.at(row, i)] - e.shift - std::log(e.sum);
  });
}

// diff_src = dst * (diff_dst - sum(diff_dst * dst))
void softmax_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  const Tensor& dst = run.in("dst");
  const Rows rows = rows_along_axis(run, dst);
  Tensor& diff_src = run.out("diff_src");
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.size; ++i) sum += diff_dst[rows.at(row, i)] * dst[rows.at(row, i)];
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      diff_src[at] = dst[at] * (diff_dst[at] - sum);
    }
  });
}

// diff_src = diff_dst - e^dst * sum(diff_dst)
void log_softmax_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  const Tensor& dst = run.in("dst");
  const Rows rows = rows_along_axis(run, dst);
  Tensor& diff_src = run.out("diff_src");
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    double sum = 0;
    for (int64_t i = 0; i < rows.size; ++i) sum += diff_dst[rows.at(row, i)];
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      diff_src[at] = diff_dst[at] - std::exp(dst[at]) * sum;
    }
  });
}

}  // namespace

Evaluators softmax_evaluators() {
  return {{OpKind::SoftMax, softmax},
          {OpKind::LogSoftmax, log_softmax},
          {OpKind::SoftMaxBackward, softmax_backward},
          {OpKind::LogSoftmaxBackward, log_softmax_backward}};
}

}  // namespace lamina::reference
