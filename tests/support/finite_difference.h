// Gradients by central differences in double, to hold against the gradients that backward ops compute.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace lamina::testing {

// d loss / d x[i] for every i. The step balances the error of the difference (step^2) against that of rounding (1e-16 / step);
// a loss that is linear between x - step and x + step takes a `given_step` that loses nothing.
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

// Sum of weights[i] * values[i]: with it as the loss, the weights are the incoming gradient of a backward op.
inline double weighted_sum(const std::vector<double>& weights, const std::vector<double>& values) {
  double total = 0;
  for (size_t i = 0; i < values.size(); ++i) total += weights[i] * values[i];
  return total;
}

}  // namespace lamina::testing
