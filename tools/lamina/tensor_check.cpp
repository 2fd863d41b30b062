#include "lamina/tensor_check.h"

#include <algorithm>
#include <cmath>

#include "interface/element.h"

namespace lamina::driver {
namespace {

// At most one element in this many may be off behind an op that jumps.
constexpr int64_t kForgivenShare = 1024;
// A kernel divides by a scale through its inverse, then adds a zero point: two roundings of f32 before it rounds to an integer.
constexpr double kBeforeInteger = 1e-6;
// The allowed multiple of what a few random disturbances of that size do.
constexpr double kOfSpread = 3;

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<int64_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace

double root_mean_square(const std::vector<double>& values) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : values)
    if (std::isfinite(value)) {
      sum += value * value;
      ++count;
    }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

double exact_value(const reference::Tensor& expected, int64_t index) {
  return expected.unrounded.empty() ? expected[index] : expected.unrounded[static_cast<size_t>(index)];
}

TensorCheck::TensorCheck(const Buffer& given, const reference::Tensor& expected, const Tolerance& tolerance,
                         const reference::Tensor* averaged)
    : given_(given),
      expected_(expected),
      tolerance_(tolerance),
      scale_(root_mean_square(expected.unrounded.empty() ? expected.values : expected.unrounded)) {
  if (averaged != nullptr) scale_ = std::max(scale_, root_mean_square(averaged->values));
}

void TensorCheck::allow(std::vector<double> spread) {
  spread_ = std::move(spread);
  least_spread_ = median(spread_);
}

CheckResult TensorCheck::run() {
  int64_t worst = -1;
  result_.worst.of_allowed = -1;
  result_.elements = given_.element_count();
  const bool is_long = !expected_.integers.empty() && reference::is_long_integer(given_.tensor().dtype);
  for_each_element(given_.tensor(), 0, result_.elements, [&](int64_t index, int64_t offset) {
    const double given = given_.load(offset);
    const double of_allowed = is_long ? judge_long(index, offset) : judge(index, given);
    if (!(of_allowed <= 1) && cannot_be_judged(index, given)) return static_cast<void>(++result_.left_out);
    if (!(of_allowed <= 1)) ++result_.failed;
    if (of_allowed <= result_.worst.of_allowed) return;
    result_.worst.of_allowed = of_allowed;
    result_.worst.given = given;
    worst = index;
  });
  if (worst >= 0) describe_worst(worst);
  result_.forgiven = result_.failed > 0 && may_forgive() ? result_.failed : 0;
  result_.good = result_.failed == result_.forgiven;
  return result_;
}

// The error as a share of what is allowed; 0 where both are the same number.
double TensorCheck::judge(int64_t index, double given) const {
  const DataType dtype = given_.tensor().dtype;
  const double exact = exact_value(expected_, index), rounded = round_to(dtype, exact);
  if (given == rounded || (std::isnan(given) && std::isnan(rounded))) return judge_equal(exact, given, index);
  if (tolerance_.exact) return HUGE_VAL;
  if (!std::isfinite(given) || !std::isfinite(rounded)) return near_overflow(given, exact) ? 1.0 : HUGE_VAL;
  if (is_floating(dtype)) return std::abs(given - exact) / allowed(exact, index);
  // A neighbour of the nearest integer is right where the number before rounding may be beyond the middle between both.
  const double room = allowed(exact, index) + kBeforeInteger * std::max(1.0, std::abs(exact));
  return std::max(0.0, std::abs(given - exact) - 0.5) / room;
}

// Doubles hold integers up to 2^53 only.
double TensorCheck::judge_long(int64_t index, int64_t offset) const {
  const auto given = load_element<int64_t>(given_.data(), offset);
  if (given == expected_.integers[static_cast<size_t>(index)]) return 0;
  return tolerance_.exact ? HUGE_VAL : judge(index, given_.load(offset));
}

// An exactly rounded result is right, but its distance still shows how much of the tolerance is used. A copy keeps the sign of
// a zero.
double TensorCheck::judge_equal(double exact, double given, int64_t index) const {
  if (tolerance_.copied && exact == 0 && is_floating(given_.tensor().dtype) && std::signbit(exact) != std::signbit(given))
    return HUGE_VAL;
  if (!std::isfinite(exact) || !std::isfinite(given) || given == exact || !is_floating(given_.tensor().dtype)) return 0;
  return std::min(1.0, std::abs(given - exact) / allowed(exact, index));
}

double TensorCheck::spread_at(int64_t index) const {
  return spread_.empty() ? 0 : kOfSpread * std::max(spread_[static_cast<size_t>(index)], least_spread_);
}

double TensorCheck::allowed(double exact, int64_t index) const {
  const double magnitude = std::abs(exact), terms = expected_.terms.empty() ? 0 : expected_.terms[static_cast<size_t>(index)];
  return spread_at(index) + tolerance_.computed * std::max({magnitude, scale_, terms}) + tolerance_.rounding * magnitude +
         tolerance_.smallest;
}

// One of both rounds to infinity, and both are close together at the end of the range.
bool TensorCheck::near_overflow(double given, double exact) const {
  if (std::isnan(given) || !std::isfinite(exact) || std::signbit(given) != std::signbit(exact)) return false;
  const DataType type = given_.tensor().dtype;
  const double slack = tolerance_.computed + 2 * tolerance_.rounding;
  return !std::isfinite(round_to(type, exact * (1 + slack))) && std::isfinite(round_to(type, exact * (1 - slack)));
}

// The element was left out, or the reference itself has no number there behind an op that has none for some values, or there is
// no number where rounding errors alone move the expected one by as much as itself.
bool TensorCheck::cannot_be_judged(int64_t index, double given) const {
  if (!left_out_.empty() && left_out_[static_cast<size_t>(index)]) return true;
  const double exact = exact_value(expected_, index);
  if (tolerance_.may_meet_pole && !std::isfinite(round_to(given_.tensor().dtype, exact))) return true;
  return tolerance_.may_meet_pole && !std::isfinite(given) && spread_at(index) >= std::abs(exact);
}

bool TensorCheck::may_forgive() const {
  return tolerance_.may_jump && result_.failed <= std::max<int64_t>(1, result_.elements / kForgivenShare);
}

void TensorCheck::describe_worst(int64_t index) {
  WorstElement& worst = result_.worst;
  worst.tensor_id = given_.tensor().id;
  worst.at = coordinates(*given_.tensor().shape, index);
  worst.expected = expected_[index];
  worst.error = std::abs(worst.given - worst.expected);
}

}  // namespace lamina::driver
