// A client of oneDNN Graph that includes only its C++ header: layer normalization forward and backward, compared with plain
// loops. The exit status is 0 if the numbers agree.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <string>
#include <vector>

#include "client.h"

namespace {

constexpr int64_t kRows = 7, kColumns = 33;
constexpr double kEpsilon = 1e-5;

struct Case {
  Floats src = numbers(kRows * kColumns, 1), gamma = numbers(kColumns, 2), beta = numbers(kColumns, 3),
         diff = numbers(kRows * kColumns, 4);
  Doubles dst, mean, variance, diff_src, diff_gamma, diff_beta;

  Case() : dst(src.size()), mean(kRows), variance(kRows), diff_src(src.size()), diff_gamma(kColumns), diff_beta(kColumns) {
    for (int64_t row = 0; row < kRows; ++row) compute(row);
  }

 private:
  void compute(int64_t row) {
    const size_t start = row * kColumns;
    for (int64_t i = 0; i < kColumns; ++i) mean[row] += src[start + i] / double(kColumns);
    for (int64_t i = 0; i < kColumns; ++i) variance[row] += std::pow(src[start + i] - mean[row], 2) / double(kColumns);
    const double rstd = 1 / std::sqrt(variance[row] + kEpsilon);
    double sum = 0, product = 0;
    for (int64_t i = 0; i < kColumns; ++i) {
      const double normal = (src[start + i] - mean[row]) * rstd;
      dst[start + i] = gamma[i] * normal + beta[i];
      sum += double(diff[start + i]) * gamma[i];
      product += double(diff[start + i]) * gamma[i] * normal;
      diff_gamma[i] += diff[start + i] * normal;
      diff_beta[i] += diff[start + i];
    }
    for (int64_t i = 0; i < kColumns; ++i) {
      const double normal = (src[start + i] - mean[row]) * rstd;
      diff_src[start + i] = rstd * (double(diff[start + i]) * gamma[i] - (sum + normal * product) / double(kColumns));
    }
  }
};

void forward(Client& client, const Case& c) {
  const logical_tensor src = f32(0, {kRows, kColumns}), gamma = f32(1, {kColumns}), beta = f32(2, {kColumns});
  const logical_tensor dst = f32(3, {kRows, kColumns}), mean = f32(4, {kRows}), variance = f32(5, {kRows});
  op norm(7, op::kind::LayerNorm, {src, gamma, beta}, {dst, mean, variance}, "norm");
  norm.set_attr<float>(op::attr::epsilon, float(kEpsilon));
  const Results results = client.run({norm}, {{src, c.src}, {gamma, c.gamma}, {beta, c.beta}}, {dst, mean, variance});
  client.expect_near("dst", results[0], c.dst, 1e-5);
  client.expect_near("mean", results[1], c.mean, 1e-5);
  client.expect_near("variance", results[2], c.variance, 1e-5);
}

void backward(Client& client, const Case& c) {
  const logical_tensor src = f32(0, {kRows, kColumns}), diff = f32(1, {kRows, kColumns}), mean = f32(2, {kRows}),
                       variance = f32(3, {kRows}), gamma = f32(4, {kColumns}), beta = f32(5, {kColumns});
  const logical_tensor diff_src = f32(6, {kRows, kColumns}), diff_gamma = f32(7, {kColumns}), diff_beta = f32(8, {kColumns});
  op norm(9, op::kind::LayerNormBackward, {src, diff, mean, variance, gamma, beta}, {diff_src, diff_gamma, diff_beta}, "back");
  norm.set_attr<float>(op::attr::epsilon, float(kEpsilon));
  const Floats means(c.mean.begin(), c.mean.end()), variances(c.variance.begin(), c.variance.end());
  const Results results =
      client.run({norm}, {{src, c.src}, {diff, c.diff}, {mean, means}, {variance, variances}, {gamma, c.gamma}, {beta, c.beta}},
                 {diff_src, diff_gamma, diff_beta});
  client.expect_near("diff_src", results[0], c.diff_src, 1e-4);
  client.expect_near("diff_gamma", results[1], c.diff_gamma, 1e-4);
  client.expect_near("diff_beta", results[2], c.diff_beta, 1e-4);
}

}  // namespace

int main() {
  Client client;
  const Case numbers;
  forward(client, numbers);
  backward(client, numbers);
  return client.exit_code();
}
