// Pooling and its gradients, plane by plane: a plane is one channel of one sample. Pixels outside the image are never read. A
// window without a pixel inside has the result of an empty reduction: a maximum of -inf, a sum of 0.
#include <cmath>
#include <limits>

#include "backends/reference/op_run.h"
#include "backends/reference/rows.h"
#include "backends/reference/window.h"
#include "interface/shape_rules.h"

namespace lamina::reference {
namespace {

// The pixels under each window that are inside the image.
class Windows {
 public:
  Windows(const OpRun& run, const Tensor& image, const Tensor& positions) {
    const OpView view = run.view();
    const Dims spatial = spatial_extents(view, image.shape);
    const Window window =
        window_of(run, spatial, spatial_extents(view, positions.shape), per_axis(view, "kernel", spatial.size(), 1));
    volume_ = window.tap_count();
    const std::vector<int64_t> pixels = pixels_of_positions(window);
    for (size_t i = 0; i < pixels.size(); ++i) {
      if (pixels[i] != kOutside) pixels_.push_back(pixels[i]);
      if ((i + 1) % static_cast<size_t>(volume_) == 0) ends_.push_back(static_cast<int64_t>(pixels_.size()));
    }
  }

  int64_t count() const { return static_cast<int64_t>(ends_.size()); }
  int64_t volume() const { return volume_; }
  int64_t begin(int64_t window) const { return window == 0 ? 0 : ends_[static_cast<size_t>(window - 1)]; }
  int64_t end(int64_t window) const { return ends_[static_cast<size_t>(window)]; }
  int64_t pixel(int64_t i) const { return pixels_[static_cast<size_t>(i)]; }

 private:
  int64_t volume_ = 1;
  std::vector<int64_t> ends_, pixels_;
};

// Calls body(window, position, pixel_at) for each window of each plane. `position` is its offset in the pooled tensor, and
// pixel_at(i) the offset of its i-th pixel in the image. Planes run on all threads.
template <typename Body>
void for_each_window(const OpRun& run, const Tensor& image, const Tensor& positions, const Windows& windows, const Body& body) {
  const ChannelLayout from = channel_layout(run, image), to = channel_layout(run, positions);
  parallel_for(from.batch * from.channels, windows.count() * windows.volume(), [&](int64_t plane) {
    const int64_t n = plane / from.channels, c = plane % from.channels;
    for (int64_t window = 0; window < windows.count(); ++window)
      body(window, to.at(n, c, window), [&](int64_t i) { return from.at(n, c, windows.pixel(i)); });
  });
}

// The number of pixels by which a mean is divided.
double divisor(const Windows& windows, int64_t window, bool exclude_pad) {
  return static_cast<double>(exclude_pad ? windows.end(window) - windows.begin(window) : windows.volume());
}

void avg_pool(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  const bool exclude_pad = run.attribute<bool>("exclude_pad");
  const Windows windows(run, src, dst);
  for_each_window(run, src, dst, windows, [&](int64_t window, int64_t position, const auto& pixel_at) {
    double sum = 0;
    for (int64_t i = windows.begin(window); i < windows.end(window); ++i) sum += src[pixel_at(i)];
    dst[position] = sum / divisor(windows, window, exclude_pad);
  });
}

void avg_pool_backward(const OpRun& run) {
  const Tensor& diff_dst = run.in("diff_dst");
  Tensor& diff_src = run.out("diff_src");
  require_listed(run, "src_shape", "diff_src");
  const bool exclude_pad = run.attribute<bool>("exclude_pad");
  const Windows windows(run, diff_src, diff_dst);
  for_each_window(run, diff_src, diff_dst, windows, [&](int64_t window, int64_t position, const auto& pixel_at) {
    const double share = diff_dst[position] / divisor(windows, window, exclude_pad);
    for (int64_t i = windows.begin(window); i < windows.end(window); ++i) diff_src[pixel_at(i)] += share;
  });
}

// The index of the pixel with the maximum of a window: the first one if several are equal; NaN counts as largest. -1 without
// pixels.
template <typename PixelAt>
int64_t largest(const Tensor& src, const Windows& windows, int64_t window, const PixelAt& pixel_at) {
  int64_t best = -1;
  for (int64_t i = windows.begin(window); i < windows.end(window); ++i) {
    const double x = src[pixel_at(i)];
    if (best < 0 || x > src[pixel_at(best)] || (std::isnan(x) && !std::isnan(src[pixel_at(best)]))) best = i;
  }
  return best;
}

void max_pool(const OpRun& run) {
  const Tensor& src = run.in("src");
  Tensor& dst = run.out("dst");
  const Windows windows(run, src, dst);
  for_each_window(run, src, dst, windows, [&](int64_t window, int64_t position, const auto& pixel_at) {
    const int64_t best = largest(src, windows, window, pixel_at);
    dst[position] = best < 0 ? -std::numeric_limits<double>::infinity() : src[pixel_at(best)];
  });
}

void max_pool_backward(const OpRun& run) {
  const Tensor& src = run.in("src");
  const Tensor& diff_dst = run.in("diff_dst");
  Tensor& diff_src = run.out("diff_src");
  const Windows windows(run, src, diff_dst);
  for_each_window(run, src, diff_dst, windows, [&](int64_t window, int64_t position, const auto& pixel_at) {
    const int64_t best = largest(src, windows, window, pixel_at);
    if (best >= 0) diff_src[pixel_at(best)] += diff_dst[position];
  });
}

}  // namespace

Evaluators pool_evaluators() {
  return {{OpKind::AvgPool, avg_pool},
          {OpKind::AvgPoolBackward, avg_pool_backward},
          {OpKind::MaxPool, max_pool},
          {OpKind::MaxPoolBackward, max_pool_backward}};
}

}  // namespace lamina::reference
