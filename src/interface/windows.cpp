#include "interface/windows.h"

#include <algorithm>
#include <string>

#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina {

namespace {

constexpr int64_t kMostTapsInARow = 32;    // that a kernel reads one after the other; the sums of windows depend on it
constexpr int64_t kMostNumbers = 1 << 24;  // of taps: floats count them exactly

struct Tap {
  int64_t pixel = 0;
  double weight = 1;
  int64_t number = 0;  // within the window
};
using TapsOfOutput = std::vector<std::vector<Tap>>;

// ---- forward

bool is_pool(const OpView& view) { return view.op().has_attribute("kernel"); }
bool excludes_pad(const OpView& view) { return view.op().has_attribute("exclude_pad") && view.attribute<bool>("exclude_pad"); }

// The windows over `image` at `positions`.
AxisTaps window_axis(const OpView& view, size_t axis, const Dims& image, const Dims& positions) {
  const size_t rank = image.size();
  const Dims kernel = per_axis(view, "kernel", rank, 1);
  AxisTaps taps{.inputs = image[axis], .outputs = positions[axis], .count = kernel[axis]};
  taps.stride = per_axis(view, "strides", rank, 1)[axis];
  taps.step = per_axis(view, "dilations", rank, 1)[axis];
  taps.first = -resolved_pads(view, image, kernel).begin[axis];
  taps.divisor = static_cast<float>(taps.count);
  if (!excludes_pad(view) || taps.reads_all()) return taps;
  for (int64_t o = 0; o < taps.outputs; ++o) {
    int64_t inside = 0;
    for (int64_t k = 0; k < taps.count; ++k) inside += taps.pixel(o, k) >= 0 ? 1 : 0;
    taps.inside.push_back(static_cast<float>(inside));
  }
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

// Replaces a table of pixels whose entries have equal distances.
void without_regular_table(AxisTaps& axis) {
  if (axis.pixels.empty()) return;
  const int64_t first = axis.pixel(0, 0), stride = axis.outputs > 1 ? axis.pixel(1, 0) - first : 1,
                step = axis.count > 1 ? axis.pixel(0, 1) - first : 0;
  for (int64_t k = 0; k < axis.count; ++k)
    for (int64_t o = 0; o < axis.outputs; ++o)
      if (axis.pixel(o, k) < 0 || axis.pixel(o, k) != first + o * stride + k * step) return;
  axis.first = first, axis.stride = stride, axis.step = step;
  axis.pixels.clear();
}

AxisTaps tabulated(const TapsOfOutput& taps, int64_t inputs) {
  AxisTaps axis{.inputs = inputs, .outputs = static_cast<int64_t>(taps.size()), .count = 0};
  bool is_weighted = false, is_numbered = false;
  for (const std::vector<Tap>& of_output : taps) axis.count = std::max(axis.count, static_cast<int64_t>(of_output.size()));
  const auto size = static_cast<size_t>(axis.count * axis.outputs);
  axis.pixels.assign(size, -1), axis.weights.assign(size, 0), axis.numbers.assign(size, -1);
  for (size_t o = 0; o < taps.size(); ++o)
    for (size_t k = 0; k < taps[o].size(); ++k) {
      const size_t entry = k * taps.size() + o;
      axis.pixels[entry] = taps[o][k].pixel;
      axis.weights[entry] = taps[o][k].weight;
      axis.numbers[entry] = taps[o][k].number;
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
TapsOfOutput readers_of(const AxisTaps& window, double divisor) {
  TapsOfOutput readers(static_cast<size_t>(window.inputs));
  for (int64_t o = 0; o < window.outputs; ++o)
    for (int64_t k = 0; k < window.count; ++k) {
      const int64_t pixel = window.pixel(o, k);
      if (pixel < 0) continue;
      const double share = divisor / static_cast<double>(window.divisor_of(o));
      readers[static_cast<size_t>(pixel)].push_back({o, window.weight(o, k) * share, k});
    }
  return readers;
}

// All sums are divided by the largest divisor, which most positions have: their weights are 1.
AxisTaps gradient_axis(const AxisTaps& window) {
  const bool is_regular = window.pixels.empty() && window.weights.empty() && window.inside.empty() && window.stride == 1;
  if (is_regular && window.count <= window.outputs) {  // the positions that read a pixel are as regular as the windows
    AxisTaps axis = window;
    axis.inputs = window.outputs, axis.outputs = window.inputs;
    axis.first = -window.first - (window.count - 1) * window.step;
    axis.counts_down = true;
    return axis;
  }
  float divisor = window.divisor;
  if (!window.inside.empty()) divisor = std::max(1.0F, *std::max_element(window.inside.begin(), window.inside.end()));
  AxisTaps axis = tabulated(readers_of(window, static_cast<double>(divisor)), window.outputs);
  axis.divisor = divisor;
  return axis;
}

// The taps of the op, or of the op whose gradient it is.
Windows windows_forward(const OpView& view) {
  const bool is_gradient = is_window_gradient(view);
  const LogicalTensor &image = is_gradient ? *view.output_at(0) : *view.input_at(0),
                      &positions = is_gradient ? *view.input("diff_dst") : *view.output_at(0);
  const Dims from = spatial_extents(view, *image.shape), to = spatial_extents(view, *positions.shape);
  Windows windows;
  for (size_t axis = 0; axis < from.size(); ++axis)
    windows.axes.push_back(is_pool(view) ? window_axis(view, axis, from, to)
                                         : tabulated(resampled_axis(view, from[axis], to[axis]), from[axis]));
  return windows;
}

}  // namespace

int64_t AxisTaps::pixel(int64_t output, int64_t tap) const {
  if (!pixels.empty()) return pixels[entry(output, tap)];
  const int64_t at = output * stride + tap * step + first;
  return at >= 0 && at < inputs ? at : -1;
}

int64_t AxisTaps::number(int64_t output, int64_t tap) const {
  if (!numbers.empty()) return numbers[entry(output, tap)];
  return counts_down ? count - 1 - tap : tap;
}

bool AxisTaps::may_be_before(int64_t tap) const {
  if (pixels.empty()) return tap * step + first < 0;
  const auto begin = pixels.begin() + static_cast<std::ptrdiff_t>(tap * outputs), end = begin + outputs;
  return std::find(begin, end, -1) != end;
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

bool is_window_gradient(const OpView& view) {
  return port_position(view.schema().inputs, view.op().attributes, "diff_dst") < view.input_count();
}

Windows forward_windows_of(const OpView& view) {
  Windows windows = windows_forward(view);
  if (windows.taps() > kMostNumbers)
    throw Error(Status::unimplemented, place_of(view.op(), "attribute kernel"),
                join("windows have ", windows.taps(), " positions, allowed is at most ", kMostNumbers));
  return windows;
}

Windows windows_of(const OpView& view) {
  Windows windows = windows_forward(view);
  if (!is_window_gradient(view)) return windows;
  for (AxisTaps& axis : windows.axes) axis = gradient_axis(axis);
  return windows;
}

}  // namespace lamina
