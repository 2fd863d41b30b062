// Judges one output tensor against the float64 reference, element by element.
#pragma once

#include <vector>

#include "backends/reference/tensor.h"
#include "lamina/buffer.h"
#include "lamina/check.h"
#include "lamina/tolerance.h"

namespace lamina::driver {

using Elements = std::vector<bool>;  // a set of an output's elements, empty for none

// The number that was rounded to give an element of a reference result.
double exact_value(const reference::Tensor& expected, int64_t index);

class TensorCheck {
 public:
  // `averaged`: the tensor whose magnitude counts as well (Tolerance::averaged), or null.
  TensorCheck(const Buffer& given, const reference::Tensor& expected, const Tolerance& tolerance,
              const reference::Tensor* averaged);

  // How far each element moves when what it is computed from moves by its own rounding error (disturbed_runs.h).
  void allow(std::vector<double> spread);
  void leave_out(const Elements& elements) { left_out_ = elements; }

  CheckResult run();

 private:
  double judge(int64_t index, double given) const;
  double judge_long(int64_t index, int64_t offset) const;
  double judge_equal(double exact, double given, int64_t index) const;
  double allowed(double exact, int64_t index) const;
  double spread_at(int64_t index) const;
  bool near_overflow(double given, double exact) const;
  bool cannot_be_judged(int64_t index, double given) const;
  bool may_forgive() const;
  void describe_worst(int64_t index);

  const Buffer& given_;
  const reference::Tensor& expected_;
  const Tolerance& tolerance_;
  double scale_;
  std::vector<double> spread_;
  double least_spread_ = 0;
  Elements left_out_;
  CheckResult result_;
};

// The root mean square of the finite elements.
double root_mean_square(const std::vector<double>& values);

}  // namespace lamina::driver
