// Batch normalisation. There is one row per channel: the inner dims are the batch and all space, and statistics are row
// values.
//   forward:   dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta
//   backward:  with r = 1 / sqrt(variance + epsilon), c = src - mean, sums over the row of N,
//              diff_src = gamma * r * (diff_dst - sum(diff_dst) / N - c * r^2 * sum(diff_dst * c) / N)
//              diff_gamma = r * sum(diff_dst * c),  diff_beta = sum(diff_dst)
// Inference has no reductions: the statistics are read per channel, like gamma and beta.
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

Value scale_and_shift(OpLowering& op, Value normalized) {
  if (op.has("gamma")) normalized = normalized * op.in("gamma");
  return op.has("beta") ? normalized + op.in("beta") : normalized;
}

Value rstd_of(OpLowering& op, Value variance) { return 1.0 / sqrt(variance + op.number("epsilon")); }

// The part that is constant within a channel is one factor. If the channels are last, it is computed once for all positions
// (kernels/shared_values.h).
void inference(OpLowering& op) {
  const Value centered = op.in("src") - op.in("mean"), rstd = rstd_of(op, op.in("variance"));
  const Value factor = op.has("gamma") ? rstd * op.in("gamma") : rstd;
  op.out("dst", op.has("beta") ? fma(centered, factor, op.in("beta")) : centered * factor);
}

void forward_training(OpLowering& op) {
  const Value src = op.in("src");
  const auto moments = op.k.moments(src);
  op.out("dst", scale_and_shift(op, op.k.center(src, moments, rstd_of(op, moments.variance))));
  const double momentum = op.has_attribute("momentum") ? op.number("momentum") : 0.5;
  const auto running = [&](Value given, Value batch) { return given * momentum + batch * (1 - momentum); };
  if (op.wants("running_mean")) op.out("running_mean", running(op.in("mean"), moments.mean));
  if (op.wants("running_variance")) op.out("running_variance", running(op.in("variance"), moments.variance));
  if (op.wants("batch_mean")) op.out("batch_mean", moments.mean);
  if (op.wants("batch_variance")) op.out("batch_variance", moments.variance);
}

void training_backward(OpLowering& op) {
  const Value diff_dst = op.in("diff_dst");
  const Value centered = op.in("src") - op.in("mean");
  const Value given = op.in("variance");
  const Value rstd = op.attribute<std::string>("stats_kind") == "rstd" ? given : rstd_of(op, given);
  const Value sum_dy = op.k.reduce(Reduction::sum, diff_dst);
  const Value sum_dyc = op.k.reduce(Reduction::sum, diff_dst * centered);
  if (op.wants("diff_src")) {
    const Value slope = sum_dyc / op.row_size() * rstd * rstd;
    const Value scale = op.has("gamma") ? rstd * op.in("gamma") : rstd;
    op.out("diff_src", fma(-centered, slope, diff_dst - sum_dy / op.row_size()) * scale);
  }
  if (op.wants("diff_gamma")) op.out("diff_gamma", sum_dyc * rstd);
  if (op.wants("diff_beta")) op.out("diff_beta", sum_dy);
}

}  // namespace

std::vector<Lowering> batch_norm_lowerings() {
  return {{OpKind::BatchNormInference, inference},
          {OpKind::BatchNormForwardTraining, forward_training},
          {OpKind::BatchNormTrainingBackward, training_backward}};
}

}  // namespace lamina::kernel
