#include "lamina/check.h"

#include <algorithm>
#include <cmath>

#include "backends/reference/run.h"
#include "interface/number_text.h"
#include "interface/op_schema.h"
#include "interface/status.h"
#include "lamina/tolerance.h"

namespace lamina::driver {
namespace {

using reference::Tensor;

// After an op with jumps, at most one in this many elements may be wrong.
constexpr int64_t kForgivenShare = 1024;

double root_mean_square(const Tensor& tensor) {
  double sum = 0;
  int64_t count = 0;
  for (const double value : tensor.values)
    if (std::isfinite(value)) {
      sum += value * value;
      ++count;
    }
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

// The real values that a Quantize rounds to integers, to distinguish a tie from an error.
struct BeforeRounding {
  const Tensor* src = nullptr;
  double error = 0;  // absolute error of src
  std::vector<double> scales;
  std::vector<double> zero_points;
  int64_t inner = 1;  // number of elements after the channel axis

  double at(int64_t index) const {
    const auto channel = static_cast<size_t>(index / inner) % scales.size();
    return (*src)[index] / scales[channel] + (zero_points.empty() ? 0 : zero_points[channel % zero_points.size()]);
  }
  double error_at(int64_t index) const {
    const auto channel = static_cast<size_t>(index / inner) % scales.size();
    return error / std::abs(scales[channel]) + 1e-6 * std::max(1.0, std::abs(at(index)));
  }
};

// The change of an output when its inputs change by a last place, and every value between the ops of its partition by the
// error that its op allows. It measures how much the graph amplifies legitimate rounding: cancelling terms, bf16 scores
// before an exponential, a sum near a tie before a Quantize.
struct Sensitivity {
  double most = 0, typical = 0;  // largest and root mean square of the differences
};
constexpr double kOfSensitivity = 3;  // the allowed multiple of the sensitivity
constexpr double kMaxOfTypical = 8;
constexpr uint64_t kDisturbedRuns = 3;  // maximum over runs: one run may change an element little by chance

using Elements = std::vector<bool>;  // a set of an output's elements

class TensorCheck {
 public:
  TensorCheck(const Buffer& given, const Tensor& expected, const Tolerance& tolerance, const BeforeRounding* ties,
              const Tensor* averaged)
      : given_(given), expected_(expected), tolerance_(tolerance), ties_(ties), scale_(root_mean_square(expected)) {
    if (averaged != nullptr) scale_ = std::max(scale_, root_mean_square(*averaged));
  }
  void allow(const Sensitivity& sensitivity) { sensitivity_ = sensitivity; }
  // Elements that are not checked.
  void leave_out(const Elements& elements) { left_out_ = elements; }

  CheckResult run() {
    const LogicalTensor& tensor = given_.tensor();
    int64_t worst = -1;
    result_.worst.of_allowed = -1;
    result_.elements = given_.element_count();
    for_each_element(tensor, 0, result_.elements, [&](int64_t index, int64_t offset) {
      const double given = given_.load(offset);
      const double of_allowed = judge(index, given);
      if (!(of_allowed <= 1) && (is_left_out(index) || is_at_pole(index))) return static_cast<void>(++result_.left_out);
      if (!(of_allowed <= 1)) ++result_.failed;
      if (of_allowed <= result_.worst.of_allowed) return;
      result_.worst.of_allowed = of_allowed;
      result_.worst.given = given;
      worst = index;
    });
    if (worst >= 0) describe_worst(worst);
    result_.forgiven = result_.failed > 0 && may_forgive() ? result_.failed : 0;
    result_.good = result_.failed == result_.forgiven && !is_off_as_a_whole();
    return result_;
  }

 private:
  bool is_left_out(int64_t index) const { return !left_out_.empty() && left_out_[static_cast<size_t>(index)]; }

  // The reference itself has no finite value there, after an op that has no result for some inputs.
  bool is_at_pole(int64_t index) const {
    return tolerance_.may_meet_pole && !std::isfinite(round_to(given_.tensor().dtype, expected_[index]));
  }

  // The error relative to the allowed error; 0 if given and expected are equal.
  double judge(int64_t index, double given) const {
    const double expected = expected_[index];
    const double rounded = round_to(given_.tensor().dtype, expected);
    if (given == rounded || (std::isnan(given) && std::isnan(rounded))) return exact_share(expected, given);
    if (tolerance_.exact) return HUGE_VAL;
    if (!std::isfinite(given) || !std::isfinite(rounded)) return near_overflow(given, expected) ? 1.0 : HUGE_VAL;
    if (!is_floating(given_.tensor().dtype)) return judge_integer(index, given, rounded);
    return std::abs(given - expected) / allowed(expected);
  }
  // A correctly rounded result is never wrong, but its distance still shows how much of the tolerance it uses.
  double exact_share(double expected, double given) const {
    if (!std::isfinite(expected) || !std::isfinite(given) || given == expected || !is_floating(given_.tensor().dtype)) return 0;
    return std::min(1.0, std::abs(given - expected) / allowed(expected));
  }
  double allowed(double expected) const {
    const double magnitude = std::abs(expected);
    return kOfSensitivity * sensitivity_.most + tolerance_.computed * std::max(magnitude, scale_) +
           tolerance_.rounding * magnitude + tolerance_.smallest;
  }
  // The largest allowed difference may come from one element, so the root mean square of all errors is checked, too.
  bool is_off_as_a_whole() {
    if (sensitivity_.most == 0 || result_.elements == 0) return false;
    double sum = 0;
    for_each_element(given_.tensor(), 0, result_.elements, [&](int64_t index, int64_t offset) {
      const double error = given_.load(offset) - expected_[index];
      if (std::isfinite(error) && !is_left_out(index)) sum += error * error;
    });
    const double typical = std::sqrt(sum / static_cast<double>(result_.elements));
    const double rounding = is_floating(given_.tensor().dtype) ? tolerance_.rounding * scale_ : 0.5;
    return typical > kOfSensitivity * sensitivity_.typical + tolerance_.computed * scale_ + rounding;
  }
  // One of the two rounds to infinity, and both are close to the end of the range.
  bool near_overflow(double given, double expected) const {
    if (std::isnan(given) || !std::isfinite(expected) || std::signbit(given) != std::signbit(expected)) return false;
    const DataType type = given_.tensor().dtype;
    const double slack = tolerance_.computed + 2 * tolerance_.rounding;
    return !std::isfinite(round_to(type, expected * (1 + slack))) && std::isfinite(round_to(type, expected * (1 - slack)));
  }
  // An adjacent integer is accepted if the value before rounding is, within its own error, at a tie.
  double judge_integer(int64_t index, double given, double rounded) const {
    if (sensitivity_.most > 0) return std::abs(given - rounded) / (kOfSensitivity * std::max(1.0, sensitivity_.most));
    if (ties_ == nullptr || std::abs(given - rounded) > 1) return HUGE_VAL;
    const double tie = 0.5 * (given + rounded);
    return std::abs(ties_->at(index) - tie) / ties_->error_at(index);
  }

  bool may_forgive() const {
    return tolerance_.may_jump && result_.failed <= std::max<int64_t>(1, result_.elements / kForgivenShare);
  }

  void describe_worst(int64_t index) {
    WorstElement& worst = result_.worst;
    worst.tensor_id = given_.tensor().id;
    worst.at = coordinates(*given_.tensor().shape, index);
    worst.expected = expected_[index];
    worst.error = std::abs(worst.given - worst.expected);
  }

  const Buffer& given_;
  const Tensor& expected_;
  const Tolerance& tolerance_;
  const BeforeRounding* ties_;
  double scale_;
  Sensitivity sensitivity_;
  Elements left_out_;
  CheckResult result_;
};

// A reproducible pseudo-random number from -1 to 1.
double noise(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  return static_cast<double>(static_cast<int64_t>(seed ^ (seed >> 31))) * 0x1p-63;
}

// The relative error of an input: one rounding in the arithmetic of kernels, which read it.
constexpr double kRoundingOfRead = 0x1p-24, kRoundingOfReadF64 = 0x1p-53;

// Perturbs every value in a run of the reference by its allowed error.
class Disturbance {
 public:
  Disturbance(const Graph& graph, uint64_t run) : graph_(graph), run_(run), scales_(graph.values().size(), 0) {}

  void operator()(const Op* maker, ValueIndex value, Tensor& tensor) {
    if (!is_floating(tensor.dtype) || !tensor.integers.empty()) return;
    Tolerance step{.computed = 0, .rounding = tensor.dtype == DataType::f64 ? kRoundingOfReadF64 : kRoundingOfRead};
    if (maker != nullptr) step = tolerance_of_step(graph_, *maker, value);
    double& scale = scales_[static_cast<size_t>(value)];
    scale = root_mean_square(tensor);
    if (graph_.value(value).consumers.empty()) return;
    if (step.averaged != kNoValue) scale = std::max(scale, scales_[static_cast<size_t>(step.averaged)]);
    const uint64_t seed = (static_cast<uint64_t>(value) << 40) + (run_ << 36);
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double magnitude = std::abs(tensor[i]);
      if (!std::isfinite(magnitude) || magnitude == 0) continue;
      tensor[i] +=
          noise(seed + static_cast<uint64_t>(i)) * (step.computed * std::max(magnitude, scale) + step.rounding * magnitude);
    }
  }

 private:
  const Graph& graph_;
  const uint64_t run_;
  std::vector<double> scales_;  // root mean square of each value
};

// Which values between two ops a run of the reference rounds to their types; a kernel that contains both ops rounds none.
enum class Stored { out_of_range, all };

// Runs the reference with such rounding; returns false if it changes no value.
bool store_between_ops(const Subgraph& subgraph, std::span<const void* const> inputs, Stored which,
                       std::vector<Tensor>& outputs) {
  bool any = false;
  const auto store = [&](const Op* maker, ValueIndex value, Tensor& tensor) {
    if (maker == nullptr || !is_floating(tensor.dtype) || subgraph.graph.value(value).consumers.empty()) return;
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double exact = tensor[i], rounded = round_to(tensor.dtype, exact);
      const bool leaves_range = std::isinf(rounded) || rounded == 0;
      if (rounded == exact || std::isnan(exact) || (which == Stored::out_of_range && !leaves_range)) continue;
      tensor[i] = rounded;
      any = true;
    }
  };
  outputs = reference::run(subgraph.graph, subgraph.inputs, subgraph.outputs, inputs, store);
  return any;
}

// Elements of outputs that cannot be checked: they depend on a value between two ops that leaves the range of its type, or on
// a comparison of values that differ by less than their types can represent. Empty if there are none.
std::vector<Elements> hang_on_storage(const Subgraph& subgraph, std::span<const void* const> inputs,
                                      std::span<const Tensor> expected) {
  std::vector<Elements> found;
  for (const Stored which : {Stored::out_of_range, Stored::all}) {
    std::vector<Tensor> stored;
    if (!store_between_ops(subgraph, inputs, which, stored)) continue;
    found.resize(stored.size());
    for (size_t output = 0; output < stored.size(); ++output) {
      const bool is_real = is_floating(subgraph.graph.tensor(subgraph.outputs[output]).dtype);
      if (is_real && which == Stored::all) continue;
      found[output].resize(static_cast<size_t>(stored[output].size()));
      for (int64_t i = 0; i < stored[output].size(); ++i)
        if (stored[output][i] != expected[output][i]) found[output][static_cast<size_t>(i)] = true;
    }
  }
  return found;
}

Sensitivity sensitivity_of(const Tensor& exact, const Tensor& disturbed, Sensitivity found) {
  double sum = 0;
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(exact[i] - disturbed[i]);
    if (!std::isfinite(difference)) continue;
    found.most = std::max(found.most, difference);
    sum += difference * difference;
  }
  found.typical = std::max(found.typical, std::sqrt(sum / static_cast<double>(std::max<int64_t>(exact.size(), 1))));
  return found;
}

// Adds the elements that are not finite in a perturbed run.
void add_poles(const Tensor& disturbed, Elements& left_out) {
  left_out.resize(static_cast<size_t>(disturbed.size()));
  for (int64_t i = 0; i < disturbed.size(); ++i) {
    if (!std::isfinite(disturbed[i])) left_out[static_cast<size_t>(i)] = true;
  }
}

// The Quantize that produces this output, if its scales are constant.
const Op* quantize_of(const Graph& graph, ValueIndex output) {
  const int producer = graph.value(output).producer.op;
  if (producer < 0 || is_floating(graph.tensor(output).dtype)) return nullptr;
  const Op& op = graph.op(producer);
  return has_constant_scales(op.kind) ? &op : nullptr;
}

bool contracts(const Graph& graph) {
  const auto& ops = graph.ops();
  return ops.size() > 1 &&
         std::any_of(ops.begin(), ops.end(), [](const Op& op) { return schema_of(op.kind).traits.contracts; });
}

BeforeRounding before_rounding(const Graph& graph, const Op& quantize, const Tensor& src) {
  BeforeRounding before{&src, 0, {}, {}, 1};
  for (const float scale : quantize.attribute<std::vector<float>>("scales"))
    before.scales.push_back(static_cast<double>(scale));
  if (quantize.has_attribute("zps"))
    for (const int64_t zp : quantize.attribute<std::vector<int64_t>>("zps"))
      before.zero_points.push_back(static_cast<double>(zp));
  if (before.scales.size() > 1) {
    const int axis = wrap_axis(quantize.attribute<int64_t>("axis"), src.rank());
    before.inner = std::max<int64_t>(1, reference::count_of(src.shape, static_cast<size_t>(axis) + 1, src.shape.size()));
  }
  double largest = root_mean_square(src);
  for (const double value : src.values)
    if (std::isfinite(value)) largest = std::max(largest, std::abs(value));
  const Tolerance tolerance = tolerance_of(graph, quantize.inputs.front());
  before.error = (tolerance.computed + 0x1p-24 + tolerance.rounding) * largest;
  return before;
}

}  // namespace

CheckResult check_partition(const Subgraph& subgraph, std::span<const void* const> inputs,
                            std::span<const std::shared_ptr<Buffer>> outputs) {
  const Graph& graph = subgraph.graph;
  // The sources of quantised outputs and of means are also needed.
  std::vector<ValueIndex> wanted = subgraph.outputs;
  std::vector<Tolerance> tolerances;
  for (const ValueIndex output : subgraph.outputs) {
    tolerances.push_back(tolerance_of(graph, output));
    if (const Op* quantize = quantize_of(graph, output)) wanted.push_back(quantize->inputs.front());
    if (tolerances.back().averaged != kNoValue) wanted.push_back(tolerances.back().averaged);
  }
  const std::vector<Tensor> expected = reference::run(graph, subgraph.inputs, wanted, inputs);

  std::vector<Elements> left_out;
  const auto check_all = [&](const std::vector<Sensitivity>* sensitivities) {
    CheckResult total;
    size_t next_source = subgraph.outputs.size();
    for (size_t i = 0; i < subgraph.outputs.size(); ++i) {
      const Op* quantize = quantize_of(graph, subgraph.outputs[i]);
      BeforeRounding before;
      if (quantize != nullptr) before = before_rounding(graph, *quantize, expected[next_source++]);
      const Tensor* averaged = tolerances[i].averaged != kNoValue ? &expected[next_source++] : nullptr;
      TensorCheck check(*outputs[i], expected[i], tolerances[i], quantize != nullptr ? &before : nullptr, averaged);
      if (sensitivities != nullptr) check.allow((*sensitivities)[i]);
      if (!left_out.empty()) check.leave_out(left_out[i]);
      merge(total, check.run());
    }
    return total;
  };
  const CheckResult strict = check_all(nullptr);
  if (strict.good) return strict;
  left_out = hang_on_storage(subgraph, inputs, expected);
  if (!left_out.empty()) {
    const CheckResult in_range = check_all(nullptr);
    if (in_range.good) return in_range;
  }
  std::vector<Sensitivity> sensitivities(subgraph.outputs.size());
  left_out.resize(subgraph.outputs.size());
  for (uint64_t run = 0; run < kDisturbedRuns; ++run) {
    const std::vector<Tensor> disturbed =
        reference::run(graph, subgraph.inputs, subgraph.outputs, inputs, Disturbance(graph, run));
    for (size_t i = 0; i < disturbed.size(); ++i) {
      sensitivities[i] = sensitivity_of(expected[i], disturbed[i], sensitivities[i]);
      if (tolerances[i].may_meet_pole) add_poles(disturbed[i], left_out[i]);
    }
  }
  // The jump of one element must not widen the tolerance of the others, so the maximum is limited. After products there is no
  // such limit.
  for (size_t i = 0; i < sensitivities.size() && !contracts(graph); ++i) {
    const bool is_real = is_floating(outputs[i]->tensor().dtype);
    sensitivities[i].most = is_real ? std::min(sensitivities[i].most, kMaxOfTypical * sensitivities[i].typical) : 0;
  }
  return check_all(&sensitivities);
}

void merge(CheckResult& total, const CheckResult& part) {
  const bool first = total.elements == 0;
  total.good = total.good && part.good;
  total.elements += part.elements;
  total.failed += part.failed;
  total.forgiven += part.forgiven;
  total.left_out += part.left_out;
  const bool worse_kind = !part.good && total.worst.of_allowed <= 1;
  if (first || worse_kind || part.worst.of_allowed > total.worst.of_allowed) total.worst = part.worst;
}

std::string CheckResult::text() const {
  if (elements == 0) return "ok, nothing to compare";
  const std::string place = join("error ", general_text(worst.error, 2), " (", general_text(worst.of_allowed, 2),
                                 " of allowed) at tensor ", worst.tensor_id, ' ', describe(worst.at));
  const std::string beyond = left_out > 0 ? join(", ", left_out, " behind values that their types cannot hold") : "";
  if (good) return join("ok, worst ", place, forgiven > 0 ? join(", ", forgiven, " near a jump") : "", beyond);
  if (failed == forgiven)
    return join("WRONG as a whole: each element is within its bound, the root mean square of all errors is not, worst ", place);
  return join("WRONG, ", failed, " of ", elements, ", worst ", place, ": ", general_text(worst.given, 9), ", expected ",
              general_text(worst.expected, 9));
}

}  // namespace lamina::driver
