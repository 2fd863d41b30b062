// Batch norms: statistics per channel over the batch and all space.
#include <cmath>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"

namespace lamina::reference {
namespace {

// The elements of one channel, numbered 0 to size - 1.
struct Channels {
  int64_t count, size, inner;  // `inner` elements of a channel are contiguous

  int64_t at(int64_t channel, int64_t i) const { return ((i / inner) * count + channel) * inner + i % inner; }
};

Channels channels_of(const OpRun& run, const Tensor& src) {
  const size_t dim = channel_dim(run, src.rank());
  const int64_t inner = count_of(src.shape, dim + 1, src.shape.size());
  return {src.shape[dim], count_of(src.shape, 0, dim) * inner, inner};
}

double entry_or(const Tensor* tensor, int64_t i, double otherwise) { return tensor == nullptr ? otherwise : (*tensor)[i]; }

void normalize(const Channels& channels, int64_t c, const Moments& moments, double epsilon, const OpRun& run, Tensor& dst) {
  const Tensor& src = run.in("src");
  const double root = std::sqrt(moments.variance + epsilon);
  const double scale = entry_or(run.in_or_null("gamma"), c, 1), shift = entry_or(run.in_or_null("beta"), c, 0);
  for (int64_t i = 0; i < channels.size; ++i) {
    const int64_t at = channels.at(c, i);
    dst[at] = scale * ((src[at] - moments.mean) / root) + shift;
  }
}

void batch_norm_inference(const OpRun& run) {
  const Channels channels = channels_of(run, run.in("src"));
  Tensor& dst = run.out("dst");
  parallel_for(channels.count, channels.size, [&](int64_t c) {
    normalize(channels, c, {run.in("mean")[c], run.in("variance")[c]}, run.number("epsilon"), run, dst);
  });
}

// running = momentum * given + (1 - momentum) * batch. A missing momentum means 0.5.
void batch_norm_forward_training(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Channels channels = channels_of(run, src);
  const double momentum = run.op().has_attribute("momentum") ? run.number("momentum") : 0.5;
  Tensor& dst = run.out("dst");
  Tensor& running_mean = run.out("running_mean");
  Tensor& running_variance = run.out("running_variance");
  Tensor& batch_mean = run.out("batch_mean");
  Tensor& batch_variance = run.out("batch_variance");
  parallel_for(channels.count, channels.size, [&](int64_t c) {
    const Moments moments = moments_of(channels.size, [&](int64_t i) { return src[channels.at(c, i)]; });
    normalize(channels, c, moments, run.number("epsilon"), run, dst);
    batch_mean[c] = moments.mean;
    batch_variance[c] = moments.variance;
    running_mean[c] = momentum * run.in("mean")[c] + (1 - momentum) * moments.mean;
    running_variance[c] = momentum * run.in("variance")[c] + (1 - momentum) * moments.variance;
  });
}

// As in LayerNormBackward, with a channel instead of a row. gamma is one factor for the whole channel.
void batch_norm_training_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& diff_dst = run.in("diff_dst");
  const Channels channels = channels_of(run, src);
  const auto n = static_cast<double>(channels.size);
  Tensor& diff_src = run.out("diff_src");
  Tensor* diff_gamma = run.wants("diff_gamma") ? &run.out("diff_gamma") : nullptr;
  Tensor* diff_beta = run.wants("diff_beta") ? &run.out("diff_beta") : nullptr;
  parallel_for(channels.count, channels.size, [&](int64_t c) {
    const double mean = run.in("mean")[c];
    const double scale = entry_or(run.in_or_null("gamma"), c, 1);
    const double given = run.in("variance")[c];
    const bool is_rstd = run.attribute<std::string>("stats_kind") == "rstd";
    const double rstd = is_rstd ? given : 1 / std::sqrt(given + run.number("epsilon"));
    double sum_dy = 0, sum_dy_xh = 0;
    for (int64_t i = 0; i < channels.size; ++i) {
      const int64_t at = channels.at(c, i);
      sum_dy += diff_dst[at];
      sum_dy_xh += diff_dst[at] * (src[at] - mean) * rstd;
    }
    for (int64_t i = 0; i < channels.size; ++i) {
      const int64_t at = channels.at(c, i);
      const double xh = (src[at] - mean) * rstd;
      diff_src[at] = scale * rstd * (diff_dst[at] - sum_dy / n - xh * (sum_dy_xh / n));
    }
    if (diff_gamma != nullptr) (*diff_gamma)[c] = sum_dy_xh;
    if (diff_beta != nullptr) (*diff_beta)[c] = sum_dy;
  });
}

}  // namespace

Evaluators batch_norm_evaluators() {
  return {{OpKind::BatchNormInference, batch_norm_inference},
          {OpKind::BatchNormForwardTraining, batch_norm_forward_training},
          {OpKind::BatchNormTrainingBackward, batch_norm_training_backward}};
}

}  // namespace lamina::reference
