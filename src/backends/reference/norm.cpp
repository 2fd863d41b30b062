// Forward norms: LayerNorm, RMSNorm, GroupNorm.
#include <cmath>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "interface/op_schema.h"

namespace lamina::reference {
namespace {

Rows norm_rows(const OpRun& run, const Tensor& src) {
  return trailing_rows(src.shape, static_cast<size_t>(wrap_axis(run.attribute<int64_t>("begin_norm_axis"), src.rank())));
}

double scale_and_shift(double normalized, const Tensor* gamma, const Tensor* beta, int64_t i) {
  if (gamma != nullptr) normalized *= (*gamma)[i];
  if (beta != nullptr) normalized += (*beta)[i];
  return normalized;
}

bool holds_rstd(const OpRun& run) { return run.attribute<std::string>("stats_kind") == "rstd"; }

// dst = gamma * (src - mean) / sqrt(variance + epsilon) + beta. With use_stats, mean and variance are inputs.
void layer_norm(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor* gamma = run.in_or_null("gamma");
  const Tensor* beta = run.in_or_null("beta");
  const Tensor* given_mean = run.in_or_null("mean");
  const Tensor* given_variance = run.in_or_null("variance");
  const double epsilon = run.number("epsilon");
  const Rows rows = norm_rows(run, src);
  Tensor& dst = run.out("dst");
  Tensor* mean = run.wants("mean") ? &run.out("mean") : nullptr;
  Tensor* variance = run.wants("variance") ? &run.out("variance") : nullptr;
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    const Moments moments = given_mean != nullptr ? Moments{(*given_mean)[row], (*given_variance)[row]}
                                                  : moments_of(rows.size, [&](int64_t k) { return src[rows.at(row, k)]; });
    const bool is_inverse = given_mean != nullptr && holds_rstd(run);
    const double root = is_inverse ? 1 / moments.variance : std::sqrt(moments.variance + epsilon);
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      dst[at] = scale_and_shift((src[at] - moments.mean) / root, gamma, beta, i);
    }
    if (mean != nullptr) (*mean)[row] = moments.mean;
    if (variance != nullptr) (*variance)[row] = holds_rstd(run) ? 1 / root : moments.variance;
  });
}

// dst = gamma * src / sqrt(mean(src^2) + epsilon). oneDNN's page prints a root of a root, but means one root.
void rms_norm(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor* gamma = run.in_or_null("gamma");
  const double epsilon = run.number("epsilon");
  const Rows rows = norm_rows(run, src);
  Tensor& dst = run.out("dst");
  parallel_for(rows.count, rows.size, [&](int64_t row) {
    double squares = 0;
    for (int64_t i = 0; i < rows.size; ++i) squares += src[rows.at(row, i)] * src[rows.at(row, i)];
    const double root = std::sqrt(squares / static_cast<double>(rows.size) + epsilon);
    for (int64_t i = 0; i < rows.size; ++i)
      dst[rows.at(row, i)] = scale_and_shift(src[rows.at(row, i)] / root, gamma, nullptr, i);
  });
}

// LayerNorm over the channels of a group and the whole space, for each sample. gamma and beta are per channel.
void group_norm(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor* gamma = run.in_or_null("gamma");
  const Tensor* beta = run.in_or_null("beta");
  const ChannelLayout layout = channel_layout(run, src);
  const int64_t groups = run.attribute<int64_t>("groups");
  const int64_t width = layout.channels / groups;
  const double epsilon = run.number("epsilon");
  Tensor& dst = run.out("dst");
  Tensor* mean = run.wants("mean") ? &run.out("mean") : nullptr;
  Tensor* variance = run.wants("variance") ? &run.out("variance") : nullptr;
  const int64_t size = width * layout.space;
  parallel_for(layout.batch * groups, size, [&](int64_t statistic) {
    const int64_t n = statistic / groups, group = statistic % groups;
    const auto channel = [&](int64_t i) { return group * width + i / layout.space; };
    const auto at = [&](int64_t i) { return layout.at(n, channel(i), i % layout.space); };
    const Moments moments = moments_of(size, [&](int64_t i) { return src[at(i)]; });
    const double root = std::sqrt(moments.variance + epsilon);
    for (int64_t i = 0; i < size; ++i)
      dst[at(i)] = scale_and_shift((src[at(i)] - moments.mean) / root, gamma, beta, channel(i));
    if (mean != nullptr) (*mean)[statistic] = moments.mean;
    if (variance != nullptr) (*variance)[statistic] = holds_rstd(run) ? 1 / root : moments.variance;
  });
}

}  // namespace

Evaluators norm_evaluators() {
  return {{OpKind::LayerNorm, layer_norm}, {OpKind::RMSNorm, rms_norm}, {OpKind::GroupNorm, group_norm}};
}

}  // namespace lamina::reference
