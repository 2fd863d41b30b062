// The gradients of LayerNorm (in its three forms), RMSNorm and GroupNorm. Each form is computed by the formulas of the
// document that defines it, independently of the others, so that they check each other. A row has N elements, r = 1 /
// sqrt(variance + epsilon), xh = (x - mean) * r.
#include <cmath>
#include <initializer_list>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "interface/op_schema.h"

namespace lamina::reference {
namespace {

Tensor* out_or_null(const OpRun& run, std::string_view port) { return run.wants(port) ? &run.out(port) : nullptr; }

// The gradient of src, whose terms may cancel.
Tensor* gradient_or_null(const OpRun& run, std::string_view port) {
  Tensor* gradient = out_or_null(run, port);
  if (gradient != nullptr) gradient->terms.resize(gradient->values.size());
  return gradient;
}

void store_sum(Tensor& gradient, int64_t at, std::initializer_list<double> terms) {
  for (const double term : terms) {
    gradient[at] += term;
    gradient.terms[static_cast<size_t>(at)] += std::abs(term);
  }
}

double gamma_at(const Tensor* gamma, int64_t i) { return gamma == nullptr ? 1.0 : (*gamma)[i]; }

// ---- LayerNormBackward

// The statistics of a row in LayerNormBackward: they map src to xh, and contain r.
struct Normalizer {
  double mean = 0, rstd = 1;
  bool already_normalized = false;

  double operator()(double x) const { return already_normalized ? x : (x - mean) * rstd; }
};

enum class StatsKind { variance, rstd, std };

StatsKind stats_kind(const OpRun& run) {
  const std::string& kind = run.attribute<std::string>("stats_kind");
  return kind == "rstd" ? StatsKind::rstd : kind == "std" ? StatsKind::std : StatsKind::variance;
}

// The normalizers of all rows, from the inputs or, without use_stats, from src.
class RowStatistics {
 public:
  RowStatistics(const OpRun& run, const Tensor& src, const Rows& rows)
      : src_(src),
        rows_(rows),
        mean_(run.in_or_null("mean")),
        spread_(run.in_or_null("variance")),
        kind_(stats_kind(run)),
        epsilon_(run.number("epsilon")) {}

  Normalizer operator[](int64_t row) const {
    if (spread_ == nullptr) {
      const Moments moments = moments_of(rows_.size, [&](int64_t i) { return src_[rows_.at(row, i)]; });
      return {moments.mean, 1 / std::sqrt(moments.variance + epsilon_)};
    }
    return mean_ == nullptr ? Normalizer{0, rstd((*spread_)[row]), true} : Normalizer{(*mean_)[row], rstd((*spread_)[row])};
  }

 private:
  double rstd(double given) const {
    if (kind_ == StatsKind::variance) return 1 / std::sqrt(given + epsilon_);
    return kind_ == StatsKind::rstd ? given : 1 / given;
  }

  const Tensor& src_;
  Rows rows_;
  const Tensor *mean_, *spread_;  // null: computed from src; if only mean is null: src is already normalised
  StatsKind kind_;
  double epsilon_;
};

// With g = diff_dst * gamma:
//   diff_src   = r * (g - mean_of_row(g) - xh * mean_of_row(g * xh))
//   diff_gamma = sum over rows of diff_dst * xh,  diff_beta = sum over rows of diff_dst
void layer_norm_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& diff_dst = run.in("diff_dst");
  const Tensor* gamma = run.in_or_null("gamma");
  Tensor* diff_src = gradient_or_null(run, "diff_src");
  Tensor* diff_gamma = out_or_null(run, "diff_gamma");
  Tensor* diff_beta = out_or_null(run, "diff_beta");
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("begin_norm_axis"), src.rank()));
  const Rows rows = trailing_rows(src.shape, axis);
  const RowStatistics statistics(run, src, rows);
  const auto n = static_cast<double>(rows.size);
  for (int64_t row = 0; row < rows.count; ++row) {
    const Normalizer normalized = statistics[row];
    double sum_g = 0, sum_g_xh = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      const double xh = normalized(src[at]);
      const double g = diff_dst[at] * gamma_at(gamma, i);
      sum_g += g;
      sum_g_xh += g * xh;
      if (diff_gamma != nullptr) (*diff_gamma)[i] += diff_dst[at] * xh;
      if (diff_beta != nullptr) (*diff_beta)[i] += diff_dst[at];
    }
    if (diff_src == nullptr) continue;
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      const double g = diff_dst[at] * gamma_at(gamma, i);
      const double r = normalized.rstd;
      store_sum(*diff_src, at, {r * g, -r * sum_g / n, -r * normalized(src[at]) * (sum_g_xh / n)});
    }
  }
}

// ---- LayerNormBackprop

// By the chain rule through variance and mean, with delta = output_delta * gamma:
//   variance_delta = sum(delta * (x - mean)) * -1/2 * r^3
//   mean_delta     = -r * sum(delta)      (its other term, variance_delta * sum(-2 * (x - mean)) / N, is 0)
//   input_delta    = delta * r + variance_delta * 2 * (x - mean) / N + mean_delta / N
// The document omits the incoming gradient, which is the second input.
void layer_norm_backprop(const OpRun& run) {
  const Tensor& x = run.in("input_forward");
  const Tensor& output_delta = run.in("output_delta");
  const Tensor* gamma = run.in_or_null("gamma");
  Tensor* input_delta = gradient_or_null(run, "input_delta");
  Tensor* gamma_delta = out_or_null(run, "gamma_delta");
  Tensor* beta_delta = out_or_null(run, "beta_delta");
  const Tensor* given_mean = run.in_or_null("mean");
  const Tensor* given_variance = run.in_or_null("variance");
  const double epsilon = run.number("epsilon");
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("begin_norm_axis"), x.rank()));
  const Rows rows = trailing_rows(x.shape, axis);
  const auto n = static_cast<double>(rows.size);
  for (int64_t row = 0; row < rows.count; ++row) {
    const Moments moments = given_mean != nullptr ? Moments{(*given_mean)[row], (*given_variance)[row]}
                                                  : moments_of(rows.size, [&](int64_t i) { return x[rows.at(row, i)]; });
    const double root = std::sqrt(moments.variance + epsilon);
    double sum_delta = 0, sum_delta_deviation = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      const double delta = output_delta[at] * gamma_at(gamma, i);
      const double deviation = x[at] - moments.mean;
      sum_delta += delta;
      sum_delta_deviation += delta * deviation;
      if (gamma_delta != nullptr) (*gamma_delta)[i] += output_delta[at] * deviation / root;
      if (beta_delta != nullptr) (*beta_delta)[i] += output_delta[at];
    }
    if (input_delta == nullptr) continue;
    const double variance_delta = sum_delta_deviation * -0.5 / (root * root * root);
    const double mean_delta = -sum_delta / root;
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      const double delta = output_delta[at] * gamma_at(gamma, i);
      store_sum(*input_delta, at, {delta / root, variance_delta * 2 * (x[at] - moments.mean) / n, mean_delta / n});
    }
  }
}

// ---- LayerNormGrad

//   res_for_gamma = (x - mean) * rstd,  dy_g = dy * gamma
//   temp_1 = sum(dy_g) / N,             temp_2 = res_for_gamma * sum(dy_g * res_for_gamma) / N
//   pd_x = (dy_g - (temp_1 + temp_2)) * rstd,  pd_gamma = sum over rows of dy * res_for_gamma,  pd_beta = sum over rows of dy
// with rstd = 1 / sqrt(variance + epsilon); the document omits the root. gamma's rank is the number of normalised axes.
void layer_norm_grad(const OpRun& run) {
  const Tensor& dy = run.in("dy");
  const Tensor& x = run.in("x");
  const Tensor& variance = run.in("variance");
  const Tensor& mean = run.in("mean");
  const Tensor& gamma = run.in("gamma");
  Tensor* pd_x = gradient_or_null(run, "pd_x");
  Tensor* pd_gamma = out_or_null(run, "pd_gamma");
  Tensor* pd_beta = out_or_null(run, "pd_beta");
  const double epsilon = run.number("epsilon");
  const Rows rows = trailing_rows(x.shape, x.shape.size() - gamma.shape.size());
  const auto n = static_cast<double>(rows.size);
  for (int64_t row = 0; row < rows.count; ++row) {
    const double rstd = 1 / std::sqrt(variance[row] + epsilon);
    std::vector<double> res_for_gamma(static_cast<size_t>(rows.size)), dy_g(static_cast<size_t>(rows.size));
    double sum_1 = 0, sum_2 = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      const auto k = static_cast<size_t>(i);
      res_for_gamma[k] = (x[at] - mean[row]) * rstd;
      dy_g[k] = dy[at] * gamma[i];
      sum_1 += dy_g[k];
      sum_2 += dy_g[k] * res_for_gamma[k];
      if (pd_gamma != nullptr) (*pd_gamma)[i] += dy[at] * res_for_gamma[k];
      if (pd_beta != nullptr) (*pd_beta)[i] += dy[at];
    }
    for (int64_t i = 0; pd_x != nullptr && i < rows.size; ++i) {
      const auto k = static_cast<size_t>(i);
      const double temp_1 = sum_1 / n, temp_2 = res_for_gamma[k] * sum_2 / n;
      store_sum(*pd_x, rows.at(row, i), {dy_g[k] * rstd, -temp_1 * rstd, -temp_2 * rstd});
    }
  }
}

// ---- RMSNormBackward

// With m = mean(x^2) + epsilon and g = dy * gamma, d dst[j] / d x[i] = gamma[j] * ([i == j] / sqrt(m) - x[j] * x[i] / (N *
// m^1.5)):
//   diff_src   = g / sqrt(m) - x * sum(g * x) / (N * m^1.5)
//   diff_gamma = sum over rows of dy * x / sqrt(m)
void rms_norm_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& diff_dst = run.in("diff_dst");
  const Tensor* gamma = run.in_or_null("gamma");
  Tensor* diff_src = gradient_or_null(run, "diff_src");
  Tensor* diff_gamma = out_or_null(run, "diff_gamma");
  const auto axis = static_cast<size_t>(wrap_axis(run.attribute<int64_t>("begin_norm_axis"), src.rank()));
  const Rows rows = trailing_rows(src.shape, axis);
  const auto n = static_cast<double>(rows.size);
  for (int64_t row = 0; row < rows.count; ++row) {
    double squares = 0, sum_gx = 0;
    for (int64_t i = 0; i < rows.size; ++i) {
      const double x = src[rows.at(row, i)];
      squares += x * x;
      sum_gx += diff_dst[rows.at(row, i)] * gamma_at(gamma, i) * x;
    }
    const double m = squares / n + run.number("epsilon"), root = std::sqrt(m);
    for (int64_t i = 0; i < rows.size; ++i) {
      const int64_t at = rows.at(row, i);
      if (diff_src != nullptr)
        store_sum(*diff_src, at, {diff_dst[at] * gamma_at(gamma, i) / root, -src[at] * sum_gx / (n * m * root)});
      if (diff_gamma != nullptr) (*diff_gamma)[i] += diff_dst[at] * src[at] / root;
    }
  }
}

// ---- GroupNormBackward

// LayerNormBackward over the channels of a group and the whole space of a sample. gamma is per channel.
void group_norm_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& diff_dst = run.in("diff_dst");
  const Tensor* given_mean = run.in_or_null("mean");
  const Tensor* given_variance = run.in_or_null("variance");
  const Tensor* gamma = run.in_or_null("gamma");
  Tensor* diff_src = gradient_or_null(run, "diff_src");
  Tensor* diff_gamma = out_or_null(run, "diff_gamma");
  Tensor* diff_beta = out_or_null(run, "diff_beta");
  const ChannelLayout layout = channel_layout(run, src);
  const int64_t groups = run.attribute<int64_t>("groups");
  const int64_t width = layout.channels / groups, size = width * layout.space;
  const auto n = static_cast<double>(size);
  for (int64_t row = 0; row < layout.batch * groups; ++row) {
    const auto channel = [&](int64_t i) { return row % groups * width + i / layout.space; };
    const auto at = [&](int64_t i) { return layout.at(row / groups, channel(i), i % layout.space); };
    const Moments moments = given_mean != nullptr ? Moments{(*given_mean)[row], (*given_variance)[row]}
                                                  : moments_of(size, [&](int64_t i) { return src[at(i)]; });
    const bool is_rstd = given_mean != nullptr && stats_kind(run) == StatsKind::rstd;
    const double rstd = is_rstd ? moments.variance : 1 / std::sqrt(moments.variance + run.number("epsilon"));
    const Normalizer normalized{moments.mean, rstd};
    double sum_g = 0, sum_g_xh = 0;
    for (int64_t i = 0; i < size; ++i) {
      const double xh = normalized(src[at(i)]), dy = diff_dst[at(i)];
      sum_g += dy * gamma_at(gamma, channel(i));
      sum_g_xh += dy * gamma_at(gamma, channel(i)) * xh;
      if (diff_gamma != nullptr) (*diff_gamma)[channel(i)] += dy * xh;
      if (diff_beta != nullptr) (*diff_beta)[channel(i)] += dy;
    }
    for (int64_t i = 0; diff_src != nullptr && i < size; ++i) {
      const double g = diff_dst[at(i)] * gamma_at(gamma, channel(i));
      store_sum(*diff_src, at(i), {rstd * g, -rstd * sum_g / n, -rstd * normalized(src[at(i)]) * (sum_g_xh / n)});
    }
  }
}

}  // namespace

Evaluators norm_backward_evaluators() {
  return {{OpKind::LayerNormBackward, layer_norm_backward},
          {OpKind::LayerNormBackprop, layer_norm_backprop},
          {OpKind::LayerNormGrad, layer_norm_grad},
          {OpKind::RMSNormBackward, rms_norm_backward},
          {OpKind::GroupNormBackward, group_norm_backward}};
}

}  // namespace lamina::reference
