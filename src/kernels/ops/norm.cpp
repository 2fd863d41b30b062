// Forward normalisation. One row per outer index; the inner dims are the normalised axes.
//   LayerNorm, GroupNorm:  dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta
//   RMSNorm:               dst = gamma * src / sqrt(mean of src^2 + epsilon)
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

Value scale_and_shift(OpLowering& op, Value normalized) {
  const bool scaled = op.has("gamma");
  const bool shifted = op.has("beta");
  if (scaled && shifted) return fma(normalized, op.in("gamma"), op.in("beta"));
  if (scaled) return normalized * op.in("gamma");
  return shifted ? normalized + op.in("beta") : normalized;
}

void layer_norm(OpLowering& op) {
  const Value src = op.in("src");
  const bool holds_rstd = op.attribute<std::string>("stats_kind") == "rstd";
  const double epsilon = op.number("epsilon");
  if (op.has("mean")) {  // use_stats: the caller passes the statistics
    const Value given = op.in("variance");
    const Value rstd = holds_rstd ? given : 1.0 / sqrt(given + epsilon);
    op.out("dst", scale_and_shift(op, (src - op.in("mean")) * rstd));
    return;
  }
  const auto moments = op.k.moments(src);
  const Value rstd = 1.0 / sqrt(moments.variance + epsilon);
  op.out("dst", scale_and_shift(op, op.k.center(src, moments, rstd)));
  if (op.wants("mean")) op.out("mean", moments.mean);
  if (op.wants("variance")) op.out("variance", holds_rstd ? rstd : moments.variance);
}

void rms_norm(OpLowering& op) {
  const Value src = op.in("src");
  const Value mean_square = op.k.reduce(Reduction::sum, src * src) / op.row_size();
  const Value rstd = 1.0 / sqrt(mean_square + op.number("epsilon"));
  op.out("dst", scale_and_shift(op, src * rstd));
}

}  // namespace

std::vector<Lowering> norm_lowerings() {
  return {{OpKind::LayerNorm, layer_norm}, {OpKind::GroupNorm, layer_norm}, {OpKind::RMSNorm, rms_norm}};
}

}  // namespace lamina::kernel
