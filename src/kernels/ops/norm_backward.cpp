// LayerNormBackward and GroupNormBackward. With r = 1 / sqrt(variance + epsilon), c = src - mean, g = diff_dst * gamma, and
// sums over the row of N elements:
//   diff_src   = r * (g - sum(g) / N - c * r^2 * sum(g * c) / N)
//   diff_gamma = sum of diff_dst * c * r over all elements that share an entry of gamma
//   diff_beta  = sum of diff_dst over the same elements
// The formulas use the centred src, because sum(g * src) - mean * sum(g) would cancel.
// RMSNormBackward is the same without a mean: c = src, r = 1 / sqrt(sum(src^2) / N + epsilon), and no sum(g).
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

struct RowStatistics {
  Value centered;  // src - mean, or (src - mean) * rstd if the op receives normalised data
  Value rstd;
  bool normalized = false;
};

RowStatistics row_statistics(OpLowering& op) {
  const Value src = op.in("src");
  const double epsilon = op.number("epsilon");
  if (!op.has("variance")) {  // use_stats is false: recomputed from src
    const auto moments = op.k.moments(src);
    return {op.k.center(src, moments), 1.0 / sqrt(moments.variance + epsilon)};
  }
  const std::string& kind = op.attribute<std::string>("stats_kind");
  const Value given = op.in("variance");
  const Value rstd = kind == "rstd" ? given : kind == "std" ? 1.0 / given : 1.0 / sqrt(given + epsilon);
  if (op.attribute<std::string>("src_kind") == "normalized") return {src, rstd, true};
  return {src - op.in("mean"), rstd};
}

Value diff_src(OpLowering& op, const RowStatistics& row, Value diff_dst) {
  const Value g = op.has("gamma") ? diff_dst * op.in("gamma") : diff_dst;
  const Value mean_g = op.k.reduce(Reduction::sum, g) / op.row_size();
  const Value mean_gc = op.k.reduce(Reduction::sum, g * row.centered) / op.row_size();
  const Value slope = row.normalized ? mean_gc : mean_gc * row.rstd * row.rstd;
  return fma(-row.centered, slope, g - mean_g) * row.rstd;
}

void write_gradients(OpLowering& op, const RowStatistics& row) {
  const Value diff_dst = op.in("diff_dst");
  if (op.wants("diff_src")) op.out("diff_src", diff_src(op, row, diff_dst));
  if (op.wants("diff_gamma")) {
    op.out_column("diff_gamma", diff_dst * (row.normalized ? row.centered : row.centered * row.rstd));
  }
  if (op.wants("diff_beta")) op.out_column("diff_beta", diff_dst);
}

void layer_norm_backward(OpLowering& op) { write_gradients(op, row_statistics(op)); }

// The sums per channel are computed in a second walk over the tensors, with other rows. Statistics that are computed here are
// carried over. The mean is carried as a float and its rounding error.
RowStatistics group_statistics(OpLowering& op) {
  const Value src = op.in("src");
  const double epsilon = op.number("epsilon");
  if (op.has("variance")) {
    const Value given = op.in("variance");
    const bool holds_rstd = op.attribute<std::string>("stats_kind") == "rstd";
    return {src - op.in("mean"), holds_rstd ? given : 1.0 / sqrt(given + epsilon)};
  }
  enum Slot { mean, rest_of_mean, rstd };
  if (op.sums_only()) return {src - op.carried(mean) - op.carried(rest_of_mean), op.carried(rstd)};
  const auto moments = op.k.moments(src);
  const RowStatistics row{op.k.center(src, moments), 1.0 / sqrt(moments.variance + epsilon)};
  op.carry(mean, moments.mean);
  op.carry(rest_of_mean, op.k.reduce(Reduction::sum, src - moments.mean) / op.row_size());
  op.carry(rstd, row.rstd);
  return row;
}

void group_norm_backward(OpLowering& op) { write_gradients(op, group_statistics(op)); }

void rms_norm_backward(OpLowering& op) {
  const Value src = op.in("src");
  const Value diff_dst = op.in("diff_dst");
  const Value mean_square = op.k.reduce(Reduction::sum, src * src) / op.row_size();
  const Value rstd = 1.0 / sqrt(mean_square + op.number("epsilon"));
  if (op.wants("diff_src")) {
    const Value g = op.has("gamma") ? diff_dst * op.in("gamma") : diff_dst;
    const Value mean_gx = op.k.reduce(Reduction::sum, g * src) / op.row_size();
    op.out("diff_src", fma(-src, mean_gx * rstd * rstd, g) * rstd);
  }
  if (op.wants("diff_gamma")) op.out_column("diff_gamma", diff_dst * (src * rstd));
}

}  // namespace

std::vector<Lowering> norm_backward_lowerings() {
  return {{OpKind::LayerNormBackward, layer_norm_backward},
          {OpKind::GroupNormBackward, group_norm_backward},
          {OpKind::RMSNormBackward, rms_norm_backward}};
}

}  // namespace lamina::kernel
