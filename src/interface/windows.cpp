#include "interface/windows.h"

#include <algorithm>
#include <string>

#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina {

namespace {

constexpr int64_t kMostTapsInARow = 32;  // that a kernel reads one after the other; the sums of windows depend on it

struct Tap {
  int64_t pixel = 0;
  double weight = 1;
  int64_t number = 0;  // within the window
};
using TapsOfOutput = std::vector<std::vector<Tap>>;

// ---- forward

AxisTaps window_axis(const OpView& view, size_t axis, const Dims& image, const Dims& positions) {
  const size_t rank = image.size();
  const Dims kernel = per_axis(view, "kernel", rank, 1);
  AxisTaps taps{.inputs = image[axis], .outputs = positions[axis], .count = kernel[axis]};
  taps.stride = per_axis(view, "strides", rank, 1)[axis];
  taps.step = per_axis(view, "dilations", rank, 1)[axis];
  taps.first = -resolved_pads(view, image, kernel).begin[axis];
  taps.divisor = static_cast<float>(taps.count);
  return taps;
}

// In integers: x = (2o + 1) inputs / (2 outputs) - 1/2, so the nearest pixel is x + 1/2 rounded down.
std::vector<Tap> nearest_taps(int64_t o, int64_t inputs, int64_t outputs, bool aligned) {
  const int64_t divisor = aligned ? std::max<int64_t>(2 * (outputs - 1), 1) : 2 * outputs;
  const int64_t pixel = aligned ? (2 * o * (inputs - 1) + (outputs - 1)) / divisor : (2 * o + 1) * inputs / divisor;
  return {{.pixel = std::min(pixel, inputs - 1)}};
}

// A pixel with weight 0 is not read, because an infinity there would make the sum NaN.
std::vector<Tap> linear_taps(int64_t o, int64_t inputs, int64_t outputs, bool aligned) {
  const auto at = static_cast<double>(o), in = static_cast<double>(inputs), out = static_cast<double>(outputs);
  const double exact = !aligned ? (at + 0.5) * in / out - 0.5 : outputs == 1 ? 0 : at * (in - 1) / (out - 1);
  const double x = std::clamp(exact, 0.0, in - 1);
  const auto below = static_cast<int64_t>(x);
  const double distance = x - static_cast<double>(below);
  if (static_cast<float>(distance) == 0) return {{.pixel = below}};
  return {{.pixel = below, .weight = 1 - distance}, {.pixel = below + 1, .weight = distance, .number = 1}};
}

// Only the extents decide which pixels are read, even if attribute scales determined them.
TapsOfOutput resampled_axis(const OpView& view, int64_t inputs, int64_t outputs) {
  const bool aligned = view.attribute<std::string>("coordinate_transformation_mode") == "align_corners";
  const auto taps_of = view.attribute<std::string>("mode") == "nearest" ? nearest_taps : linear_taps;
  TapsOfOutput taps;
  for (int64_t o = 0; o < outputs && inputs > 0; ++o) taps.push_back(taps_of(o, inputs, outputs, aligned));
  taps.resize(static_cast<size_t>(outputs));
  return taps;
}

// ---- tables

TapsOfOutput listed(const AxisTaps& axis) {
  TapsOfOutput taps(static_cast<size_t>(axis.outputs));
  for (int64_t o = 0; o < axis.outputs; ++o) {
    for (int64_t k = 0; k < axis.count; ++k) {
      const double weight = axis.weights.empty() ? 1 : axis.weights[static_cast<size_t>(k * axis.outputs + o)];
      if (const int64_t pixel = axis.pixel(o, k); pixel >= 0) taps[static_cast<size_t>(o)].push_back({pixel, weight, k});
    }
  }
  return taps;
}

// Replaces a table of pixels whose entries have equal distances.
void without_regular_table(AxisTaps& axis) {
  const auto at = [&](int64_t k, int64_t o) {
    return static_cast<int64_t>(axis.pixels[static_cast<size_t>(k * axis.outputs + o)]);
  };
  if (axis.pixels.empty()) return;
  const int64_t first = at(0, 0), stride = axis.outputs > 1 ? at(0, 1) - first : 1,
                step = axis.count > 1 ? at(1, 0) - first : 0;
  for (int64_t k = 0; k < axis.count; ++k)
    for (int64_t o = 0; o < axis.outputs; ++o)
      if (at(k, o) < 0 || at(k, o) != first + o * stride + k * step) return;
  axis.first = first, axis.stride = stride, axis.step = step;
  axis.pixels.clear();
}

AxisTaps tabulated(const TapsOfOutput& taps, int64_t inputs) {
  constexpr int64_t kMostPixels = 1 << 24;  // floats count them exactly
  if (inputs > kMostPixels)
    throw Error(Status::unimplemented, join("a spatial axis has ", inputs, " positions, allowed is ", kMostPixels));
  AxisTaps axis{.inputs = inputs, .outputs = static_cast<int64_t>(taps.size()), .count = 0};
  bool is_weighted = false, is_numbered = false;
  for (const std::vector<Tap>& of_output : taps) axis.count = std::max(axis.count, static_cast<int64_t>(of_output.size()));
  const auto size = static_cast<size_t>(axis.count * axis.outputs);
  axis.pixels.assign(size, -1), axis.weights.assign(size, 0), axis.numbers.assign(size, -1);
  for (size_t o = 0; o < taps.size(); ++o)
    for (size_t k = 0; k < taps[o].size(); ++k) {
      const size_t entry = k * taps.size() + o;
      axis.pixels[entry] = static_cast<float>(taps[o][k].pixel);
      axis.weights[entry] = static_cast<float>(taps[o][k].weight);
      axis.numbers[entry] = static_cast<float>(taps[o][k].number);
      is_weighted = is_weighted || taps[o][k].weight != 1;
      is_numbered = is_numbered || taps[o][k].number != static_cast<int64_t>(k);
    }
  if (!is_weighted) axis.weights.clear();
  if (!is_numbered) axis.numbers.clear();
  without_regular_table(axis);
  return axis;
}

// ---- gradients

// The positions of the output that read each position of the input. Outputs with fewer taps than others have larger weights.
TapsOfOutput reversed(const TapsOfOutput& taps, int64_t inputs, bool shares, double divisor) {
  TapsOfOutput readers(static_cast<size_t>(inputs));
  for (size_t o = 0; o < taps.size(); ++o)
    for (const Tap& tap : taps[o]) {
      const double share = shares ? divisor / static_cast<double>(taps[o].size()) : 1;
      readers[static_cast<size_t>(tap.pixel)].push_back({static_cast<int64_t>(o), tap.weight * share, tap.number});
    }
  return readers;
}

AxisTaps gradient_axis(const AxisTaps& window, bool excludes_pad) {
  const bool shares = excludes_pad && !window.reads_all();
  const bool is_regular = window.pixels.empty() && window.weights.empty() && window.stride == 1;
  if (is_regular && !shares &&
      window.count <= window.outputs) {  // the positions that read a pixel are as regular as the windows
    AxisTaps axis = window;
    axis.inputs = window.outputs, axis.outputs = window.inputs;
    axis.step = -window.step, axis.first = -window.first;
    return axis;
  }
  AxisTaps axis = tabulated(reversed(listed(window), window.inputs, shares, static_cast<double>(window.count)), window.outputs);
  axis.divisor = window.divisor;
  return axis;
}

bool is_pool(const OpView& view) { return view.op().has_attribute("kernel"); }
bool excludes_pad(const OpView& view) { return view.op().has_attribute("exclude_pad") && view.attribute<bool>("exclude_pad"); }
bool is_gradient(const OpView& view) {
  return port_position(view.schema().inputs, view.op().attributes, "diff_dst") < view.input_count();
}

// The windows over `image` at `positions`.
AxisTaps window_with_counts(const OpView& view, size_t axis, const Dims& image, const Dims& positions) {
  AxisTaps taps = window_axis(view, axis, image, positions);
  if (!excludes_pad(view) || taps.reads_all()) return taps;
  for (const std::vector<Tap>& of_output : listed(taps)) taps.inside.push_back(static_cast<float>(of_output.size()));
  return taps;
}

}  // namespace

int64_t AxisTaps::pixel(int64_t output, int64_t tap) const {
  if (!pixels.empty()) return static_cast<int64_t>(pixels[static_cast<size_t>(tap * outputs + output)]);
  const int64_t at = output * stride + tap * step + first;
  return at >= 0 && at < inputs ? at : -1;
}

bool AxisTaps::may_be_before(int64_t tap) const {
  if (pixels.empty()) return tap * step + first < 0;
  const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(tap * outputs);
  return std::find(begin, begin + static_cast<std::ptrdiff_t>(outputs), -1.0F) != begin + static_cast<std::ptrdiff_t>(outputs);
}

bool AxisTaps::may_be_after(int64_t tap) const {
  return pixels.empty() && (outputs - 1) * stride + tap * step + first >= inputs;
}

bool AxisTaps::reads_all() const {
  for (int64_t k = 0; k < count; ++k)
    if (may_be_before(k) || may_be_after(k)) return false;
  return true;
}

int64_t Windows::taps() const {
  Dims counts;
  for (const AxisTaps& axis : axes) counts.push_back(axis.count);
  return checked_product(counts, "positions of a window");
}

bool Windows::are_loops() const { return taps() > kMostTapsInARow; }

Windows forward_windows_of(const OpView& view) {
  const LogicalTensor &image = is_gradient(view) ? *view.output_at(0) : *view.input_at(0),
                      &positions = is_gradient(view) ? *view.input("diff_dst") : *view.output_at(0);
  const Dims from = spatial_extents(view, *image.shape), to = spatial_extents(view, *positions.shape);
  Windows windows;
  for (size_t axis = 0; axis < from.size(); ++axis)
    windows.axes.push_back(is_pool(view) ? window_with_counts(view, axis, from, to)
                                         : tabulated(resampled_axis(view, from[axis], to[axis]), from[axis]));
  return windows;
}

Windows windows_of(const OpView& view) {
  Windows windows = forward_windows_of(view);
  if (!is_gradient(view)) return windows;
  for (AxisTaps& axis : windows.axes) axis = gradient_axis(axis, excludes_pad(view));
  return windows;
}

}  // namespace lamina
