// Resampling of the spatial axes and its adjoint. Along one axis, pixel o of the output reads the input at
//   half_pixel     x = (o + 1/2) * in / out - 1/2
//   align_corners  x = o * (in - 1) / (out - 1), 0 where out is 1
// clamped to the input. Nearest uses the nearest pixel (the later one of two equally near pixels); linear uses the two pixels
// around x, weighted by distance. Only the extents decide which pixels are read, even if attribute scales determined them.
// Weights of several axes are multiplied.
#include <algorithm>
#include <cmath>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "interface/shape_rules.h"

namespace lamina::reference {
namespace {

struct Tap {
  int64_t pixel = 0;
  double weight = 1;
};
using Taps = std::vector<Tap>;

// One tap for each pixel of the output. x = (2o + 1) in / (2 out) - 1/2, so the nearest pixel is x + 1/2 rounded down.
Taps nearest_taps(int64_t in, int64_t out, bool align_corners) {
  Taps taps;
  for (int64_t o = 0; o < out; ++o) {
    const int64_t divisor = std::max<int64_t>(align_corners ? 2 * (out - 1) : 2 * out, 1);
    const int64_t pixel = align_corners ? (2 * o * (in - 1) + (out - 1)) / divisor : (2 * o + 1) * in / divisor;
    taps.push_back({std::min(pixel, in - 1), 1});
  }
  return taps;
}

// Two taps for each pixel of the output.
Taps linear_taps(int64_t in, int64_t out, bool align_corners) {
  Taps taps;
  for (int64_t o = 0; o < out; ++o) {
    const auto at = static_cast<double>(o), from = static_cast<double>(in), to = static_cast<double>(out);
    const double aligned = out == 1 ? 0 : at * (from - 1) / (to - 1);
    const double x = std::clamp(align_corners ? aligned : (at + 0.5) * from / to - 0.5, 0.0, from - 1);
    const auto below = static_cast<int64_t>(x);
    const double distance = x - static_cast<double>(below);
    taps.push_back({below, 1 - distance});
    taps.push_back({std::min(below + 1, in - 1), distance});
  }
  return taps;
}

// The pixels of the input that each pixel of the output reads, `per_pixel` taps each.
struct Resampling {
  size_t per_pixel = 1;
  Taps taps{{0, 1}};

  void add_axis(const Taps& axis, size_t axis_per_pixel, int64_t in) {
    Taps joined;
    const size_t pixels = taps.size() / per_pixel, axis_pixels = axis.size() / axis_per_pixel;
    for (size_t pixel = 0; pixel < pixels; ++pixel)
      for (size_t o = 0; o < axis_pixels; ++o)
        for (size_t i = 0; i < per_pixel; ++i)
          for (size_t k = 0; k < axis_per_pixel; ++k) {
            const Tap &outer = taps[pixel * per_pixel + i], &inner = axis[o * axis_per_pixel + k];
            joined.push_back({outer.pixel * in + inner.pixel, outer.weight * inner.weight});
          }
    taps = std::move(joined);
    per_pixel *= axis_per_pixel;
  }
};

Resampling resampling_of(const OpRun& run, const Tensor& input, const Tensor& output) {
  const bool nearest = run.attribute<std::string>("mode") == "nearest";
  const bool align_corners = run.attribute<std::string>("coordinate_transformation_mode") == "align_corners";
  const Dims from = spatial_extents(run.view(), input.shape), to = spatial_extents(run.view(), output.shape);
  Resampling resampling;
  for (size_t axis = 0; axis < from.size(); ++axis) {
    const auto make = nearest ? nearest_taps : linear_taps;
    resampling.add_axis(make(from[axis], to[axis], align_corners), nearest ? 1 : 2, from[axis]);
  }
  return resampling;
}

// Calls body(input position, output position, weight) for each tap of each pixel. Planes (channels of samples) run on all
// threads.
template <typename Body>
void for_each_tap(const OpRun& run, const Tensor& input, const Tensor& output, const Body& body) {
  if (input.size() == 0 || output.size() == 0) return;
  const Resampling resampling = resampling_of(run, input, output);
  const ChannelLayout from = channel_layout(run, input), to = channel_layout(run, output);
  parallel_for(from.batch * from.channels, static_cast<int64_t>(resampling.taps.size()), [&](int64_t plane) {
    const int64_t n = plane / from.channels, c = plane % from.channels;
    for (size_t i = 0; i < resampling.taps.size(); ++i) {
      const Tap& tap = resampling.taps[i];
      body(from.at(n, c, tap.pixel), to.at(n, c, static_cast<int64_t>(i / resampling.per_pixel)), tap.weight);
    }
  });
}

void interpolate(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  require_listed(run, "sizes", "dst", spatial_extents(run.view(), dst.shape));
  for_each_tap(run, src, dst, [&](int64_t from, int64_t to, double weight) {
    if (weight != 0) dst[to] += weight * src[from];  // a weight of 0 must not add infinity * 0
  });
}

void interpolate_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  Tensor& diff_src = run.out("diff_src");
  require_listed(run, "sizes", "diff_dst", spatial_extents(run.view(), diff_dst.shape));
  for_each_tap(run, diff_src, diff_dst, [&](int64_t from, int64_t to, double weight) {
    if (weight != 0) diff_src[from] += weight * diff_dst[to];
  });
}

}  // namespace

Evaluators interpolate_evaluators() {
  return {{OpKind::Interpolate, interpolate}, {OpKind::InterpolateBackward, interpolate_backward}};
}

}  // namespace lamina::reference
