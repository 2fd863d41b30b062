#include "lamina/disturbed_runs.h"

#include <algorithm>
#include <cmath>
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

class Disturbance {
 public:
  Disturbance(const Graph& graph, uint64_t run) : graph_(graph), run_(run), scales_(graph.values().size(), 0) {}

  void operator()(const Op* maker, ValueIndex value, Tensor& tensor) {
    if (!is_floating(tensor.dtype) || !tensor.integers.empty()) return;
    Tolerance step{.computed = 0, .rounding = tensor.dtype == DataType::f64 ? kRoundingOfReadF64 : kRoundingOfRead};
    if (maker != nullptr) step = tolerance_of_step(graph_, *maker, value);
    double& scale = scales_[static_cast<size_t>(value)];
    scale = root_mean_square(tensor.values);
    if (graph_.value(value).consumers.empty()) return;
    if (step.averaged != kNoValue) scale = std::max(scale, scales_[static_cast<size_t>(step.averaged)]);
    const uint64_t seed = (static_cast<uint64_t>(value) << 40) + (run_ / 2 << 36);
    const double direction = run_ % 2 == 0 ? 1 : -1;
#pragma omp parallel for schedule(static)
    for (int64_t i = 0; i < tensor.size(); ++i) {
      const double magnitude = std::abs(tensor[i]);
      if (!std::isfinite(magnitude) || (magnitude == 0 && (run_ != kFlushingRun || maker == nullptr))) continue;
      const double terms = tensor.terms.empty() ? 0 : tensor.terms[static_cast<size_t>(i)];
      const double distance = step.computed * std::max({magnitude, scale, terms}) + step.rounding * magnitude;
      if (run_ != kFlushingRun)
        tensor[i] += direction * noise(seed + static_cast<uint64_t>(i)) * distance;
      else if (magnitude <= distance)
        tensor[i] = std::signbit(tensor[i]) ? 0.0 : -0.0;
    }
  }

 private:
  const Graph& graph_;
  const uint64_t run_;
  std::vector<double> scales_;  // per value: its root mean square
};

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

// The values between two ops that a run stores in their types. A kernel that holds both ops stores none.
enum class Stored { out_of_range, all };

class Storage {
 public:
  Storage(const Graph& graph, Stored which) : graph_(graph), which_(which) {}

  void operator()(const Op* maker, ValueIndex value, Tensor& tensor) {
    if (maker == nullptr || !is_floating(tensor.dtype)) return;
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
  void change(double& element, double to) {
    element = to;
    has_changed_ = true;
  }

  const Graph& graph_;
  const Stored which_;
  bool has_changed_ = false;
};

}  // namespace

Disturbed run_disturbed(const Subgraph& subgraph, std::span<const void* const> inputs, std::span<const Tensor> expected) {
  Disturbed found;
  found.poles.resize(subgraph.outputs.size());
  for (size_t i = 0; i < subgraph.outputs.size(); ++i) found.spreads.emplace_back(static_cast<size_t>(expected[i].size()), 0.0);
  for (uint64_t run = 0; run < kRuns; ++run) {
    const std::vector<Tensor> disturbed =
        reference::run(subgraph.graph, subgraph.inputs, subgraph.outputs, inputs, Disturbance(subgraph.graph, run));
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
