#include "lamina/disturbed_runs.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "backends/reference/run.h"
#include "interface/op_schema.h"
#include "lamina/tolerance.h"

namespace lamina::driver {
namespace {

using reference::Tensor;

// The runs 2k and 2k + 1 move each value by the same distance in opposite directions. The last run moves no value, but sets to
// 0 what may be 0, with the other sign: a comparison with 0 depends on it, and the sign of 1 / 0.
constexpr uint64_t kMovingRuns = 6, kFlushingRun = kMovingRuns, kRuns = kMovingRuns + 1;
constexpr uint64_t kRunsOfOneValue = 4;

// From -3/2 to -1 or from 1 to 3/2: it looks random, and is the same each time. At least 1, so that what an error may reach, in
// its direction, is reached, and a run that moves an element by little tells that it depends on its inputs by little.
double noise(uint64_t seed) {
  seed += 0x9e3779b97f4a7c15;
  seed = (seed ^ (seed >> 30)) * 0xbf58476d1ce4e5b9;
  seed = (seed ^ (seed >> 27)) * 0x94d049bb133111eb;
  const auto signed_unit = static_cast<double>(static_cast<int64_t>(seed ^ (seed >> 31))) * 0x1p-63;
  return signed_unit < 0 ? signed_unit / 2 - 1 : signed_unit / 2 + 1;
}

// An input's last place, in the arithmetic of kernels.
constexpr double kRoundingOfRead = 0x1p-24, kRoundingOfReadF64 = 0x1p-53;

// The values that a run moves: all, the graph's inputs, or one value.
constexpr ValueIndex kAll = -2, kInputs = -3;

class Disturbance {
 public:
  Disturbance(const Graph& graph, uint64_t run, ValueIndex moved)
      : graph_(graph), run_(run), moved_(moved), scales_(graph.values().size(), 0) {}

  void operator()(const Op* maker, ValueIndex value, Tensor& tensor) {
    if (!is_floating(tensor.dtype) || !tensor.integers.empty()) return;
    Tolerance step{.computed = 0, .rounding = tensor.dtype == DataType::f64 ? kRoundingOfReadF64 : kRoundingOfRead};
    if (maker != nullptr) step = tolerance_of_step(graph_, *maker, value);
    double& scale = scales_[static_cast<size_t>(value)];
    scale = root_mean_square(tensor.values);
    if (graph_.value(value).consumers.empty() || !moves(maker, value)) return;
    if (step.averaged != kNoValue) scale = std::max(scale, scales_[static_cast<size_t>(step.averaged)]);
    const uint64_t seed = (static_cast<uint64_t>(value) << 40) + (run_ / 2 << 36);
    const double direction = run_ % 2 == 0 ? 1 : -1;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double magnitude = std::abs(tensor[i]);
      if (!std::isfinite(magnitude) || (magnitude == 0 && (run_ != kFlushingRun || maker == nullptr))) continue;
      const double terms = tensor.terms.empty() ? 0 : tensor.terms[static_cast<size_t>(i)];
      const double distance = step.computed * std::max({magnitude, scale, terms}) + step.rounding * magnitude + step.smallest;
      if (run_ != kFlushingRun)
        tensor[i] += direction * noise(seed + static_cast<uint64_t>(i)) * distance;
      else if (magnitude <= distance)
        tensor[i] = std::signbit(tensor[i]) ? 0.0 : -0.0;
    }
  }

 private:
  bool moves(const Op* maker, ValueIndex value) const {
    return moved_ == kAll || moved_ == (maker == nullptr ? kInputs : value);
  }

  const Graph& graph_;
  const uint64_t run_;
  const ValueIndex moved_;
  std::vector<double> scales_;  // per value: its root mean square
};

using Spreads = std::vector<std::vector<double>>;  // by output and element

Spreads no_spreads(std::span<const Tensor> expected) {
  Spreads spreads;
  for (const Tensor& tensor : expected) spreads.emplace_back(static_cast<size_t>(tensor.size()), 0.0);
  return spreads;
}

void widen(std::vector<double>& spread, const Tensor& exact, const Tensor& disturbed) {
  for (int64_t i = 0; i < exact.size(); ++i) {
    const double difference = std::abs(exact_value(exact, i) - exact_value(disturbed, i));
    if (std::isfinite(difference)) spread[static_cast<size_t>(i)] = std::max(spread[static_cast<size_t>(i)], difference);
  }
}

void add_poles(const Tensor& disturbed, Elements& poles) {
  poles.resize(static_cast<size_t>(disturbed.size()));
  for (int64_t i = 0; i < disturbed.size(); ++i) {
    if (!std::isfinite(disturbed[i])) poles[static_cast<size_t>(i)] = true;
  }
}

constexpr double kLargestToSquare = 0x1p60;  // sums of some squares of larger numbers leave the range of f32

// The values between two ops that a run stores in their types. A kernel that holds both ops stores none.
enum class Stored { out_of_range, all };

class Storage {
 public:
  Storage(const Graph& graph, Stored which) : graph_(graph), which_(which), is_beyond_squares_(graph.values().size(), false) {}

  void operator()(const Op* maker, ValueIndex value, Tensor& tensor) {
    if (!is_floating(tensor.dtype)) return;
    const auto is_beyond = [](double element) { return std::abs(element) > kLargestToSquare; };
    is_beyond_squares_[static_cast<size_t>(value)] =
        tensor.dtype != DataType::f64 && std::any_of(tensor.values.begin(), tensor.values.end(), is_beyond);
    if (maker == nullptr) return;
    if (squares_beyond_range(*maker))
      for (double& element : tensor.values) change(element, std::numeric_limits<double>::quiet_NaN());
    for (size_t i = 0; i < tensor.out_of_range.size(); ++i) {
      if (tensor.out_of_range[i]) change(tensor.values[i], std::numeric_limits<double>::quiet_NaN());
    }
    if (graph_.value(value).consumers.empty()) return;
    for (double& element : tensor.values) {
      const double rounded = round_to(tensor.dtype, element);
      const bool leaves_range = std::isinf(rounded) || rounded == 0;
      if (rounded == element || std::isnan(element) || (which_ == Stored::out_of_range && !leaves_range)) continue;
      change(element, rounded);
    }
  }
  bool has_changed() const { return has_changed_; }

 private:
  // The pages of these ops state the range in which they sum squares.
  bool squares_beyond_range(const Op& op) const {
    return schema_of(op.kind).traits.squares && std::any_of(op.inputs.begin(), op.inputs.end(), [&](ValueIndex input) {
             return input != kNoValue && is_beyond_squares_[static_cast<size_t>(input)];
           });
  }

  void change(double& element, double to) {
    element = to;
    has_changed_ = true;
  }

  const Graph& graph_;
  const Stored which_;
  std::vector<bool> is_beyond_squares_;  // per value
  bool has_changed_ = false;
};

// How far the runs that move one value move each element of each output, added over all values: where a run moves all of them,
// their effects may cancel.
Spreads sum_of_single_effects(const Subgraph& subgraph, std::span<const void* const> inputs, std::span<const Tensor> expected) {
  Spreads sums = no_spreads(expected);
  std::vector<ValueIndex> moved = {kInputs};
  for (const Op& op : subgraph.graph.ops())
    for (const ValueIndex value : op.outputs)
      if (value != kNoValue && !subgraph.graph.value(value).consumers.empty()) moved.push_back(value);
  for (const ValueIndex value : moved) {
    Spreads spreads = no_spreads(expected);
    for (uint64_t run = 0; run < kRunsOfOneValue; ++run) {
      const std::vector<Tensor> disturbed =
          reference::run(subgraph.graph, subgraph.inputs, subgraph.outputs, inputs, Disturbance(subgraph.graph, run, value));
      for (size_t i = 0; i < disturbed.size(); ++i) widen(spreads[i], expected[i], disturbed[i]);
    }
    for (size_t i = 0; i < sums.size(); ++i)
      std::transform(sums[i].begin(), sums[i].end(), spreads[i].begin(), sums[i].begin(), std::plus<>());
  }
  return sums;
}

}  // namespace

Disturbed run_disturbed(const Subgraph& subgraph, std::span<const void* const> inputs, std::span<const Tensor> expected) {
  Disturbed found{.spreads = sum_of_single_effects(subgraph, inputs, expected.first(subgraph.outputs.size())), .poles = {}};
  found.poles.resize(subgraph.outputs.size());
  for (uint64_t run = 0; run < kRuns; ++run) {
    const std::vector<Tensor> disturbed =
        reference::run(subgraph.graph, subgraph.inputs, subgraph.outputs, inputs, Disturbance(subgraph.graph, run, kAll));
    for (size_t i = 0; i < disturbed.size(); ++i) {
      widen(found.spreads[i], expected[i], disturbed[i]);
      if (tolerance_of(subgraph.graph, subgraph.outputs[i]).may_meet_pole) add_poles(disturbed[i], found.poles[i]);
    }
  }
  return found;
}

std::vector<Elements> depend_on_storage(const Subgraph& subgraph, std::span<const void* const> inputs,
                                        std::span<const Tensor> expected) {
  std::vector<Elements> found;
  for (const Stored which : {Stored::out_of_range, Stored::all}) {
    Storage storage(subgraph.graph, which);
    const std::vector<Tensor> stored =
        reference::run(subgraph.graph, subgraph.inputs, subgraph.outputs, inputs, std::ref(storage));
    if (!storage.has_changed()) continue;
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

}  // namespace lamina::driver
