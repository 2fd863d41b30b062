// Gradients by central differences in double, for comparison with the results of the backward ops.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace lamina::testing {

// Returns d loss / d x[i] for every i. The default step balances the truncation error (step^2) and the rounding error (1e-16 /
// step). For a loss that is linear between x - step and x + step, a larger `given_step` has no truncation error.
inline std::vector<double> numeric_gradient(const std::function<double(const std::vector<double>&)>& loss,
                                            std::vector<double> x, double given_step = 0) {
  std::vector<double> gradient(x.size());
  for (size_t i = 0; i < x.size(); ++i) {
    const double at = x[i];
    const double step = given_step > 0 ? given_step : 1e-5 * std::max(1.0, std::fabs(at));
    x[i] = at + step;
    const double above = loss(x);
    x[i] = at - step;
    const double below = loss(x);
    x[i] = at;
    gradient[i] = (above - below) / (2 * step);
  }
  return gradient;
}

// Returns the sum of weights[i] * values[i]. With this sum as the loss, the weights are the incoming gradient of a backward op.
inline double weighted_sum(const std::vector<double>& weights, const std::vector<double>& values) {
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) total += weights[i] * values[i];
  return total;
}

}  // namespace lamina::testing
