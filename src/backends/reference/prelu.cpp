// PReLU and its gradient. The slope is one number, one per channel, or broadcasts to src.
#include "backends/reference/op_run.h"

namespace lamina::reference {
namespace {

bool is_per_channel(const OpRun& run, const Tensor& src, const Tensor& slope) {
  if (slope.rank() != 1 || src.rank() < 2) return false;
  if (run.op().has_attribute("per_channel_broadcast") && !run.attribute<bool>("per_channel_broadcast")) return false;
  return slope.shape[0] == src.shape[channel_dim(run, src.rank())];
}

// Strides that read the slope along src.
Dims slope_strides(const OpRun& run, const Tensor& src, const Tensor& slope) {
  if (!is_per_channel(run, src, slope)) return broadcast_strides(slope.shape, src.shape);
  Dims strides(src.shape.size(), 0);
  strides[channel_dim(run, src.rank())] = 1;
  return strides;
}

void prelu(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& slope = run.in("slope");
  Tensor& dst = run.out("dst");
  for_each_offset<2>(src.shape, {dense_strides(src.shape), slope_strides(run, src, slope)}, [&](const auto& at) {
    const double x = src[at[0]];
    dst[at[0]] = x >= 0 ? x : slope[at[1]] * x;
  });
}

// diff_slope is the sum of diff_dst * src where src is negative, over all elements that share an entry of the slope.
void prelu_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& slope = run.in("slope");
  const Tensor& diff_dst = run.in("diff_dst");
  Tensor& diff_src = run.out("diff_src");
  Tensor& diff_slope = run.out("diff_slope");
  for_each_offset<2>(src.shape, {dense_strides(src.shape), slope_strides(run, src, slope)}, [&](const auto& at) {
    const double x = src[at[0]], dy = diff_dst[at[0]];
    const bool passes = x >= 0;
    diff_src[at[0]] = passes ? dy : slope[at[1]] * dy;
    if (!passes) diff_slope[at[1]] += dy * x;
  });
}

}  // namespace

Evaluators prelu_evaluators() { return {{OpKind::PReLU, prelu}, {OpKind::PReLUBackward, prelu_backward}}; }

}  // namespace lamina::reference
