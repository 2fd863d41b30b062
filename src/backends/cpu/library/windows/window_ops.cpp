// Pools, Interpolate and their gradients, by lamina's own loops, where these are faster than kernels: vectors of such images
// are not contiguous, so the loops transpose them, and overlapping windows share work. oneDNN's maximum loses NaN and
// infinities, and its pools refuse windows outside the image and have fast code only for dense windows of dense tensors. Its
// resampling supports neither align_corners nor the choice of the later one of two equally near pixels, and its gradient is
// slow.
#include <utility>
#include <vector>

#include "backends/cpu/dispatch/windows/window_step.h"
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/windows/op_ports.h"
#include "interface/shape_rules.h"
#include "interface/windows.h"

namespace lamina::cpu {

namespace {

// Taps are numbered in steps of `number_step`, so that the sum of several axes' numbers identifies a tap.
TapLists tap_lists_of(const AxisTaps& axis, int64_t number_step) {
  TapLists lists;
  std::vector<Tap> taps;
  for (int64_t output = 0; output < axis.outputs; ++output) {
    taps.clear();
    for (int64_t tap = 0; tap < axis.count; ++tap)
      if (const int64_t pixel = axis.pixel(output, tap); pixel >= 0)
        taps.push_back({pixel, static_cast<float>(axis.weight(output, tap)),
                        static_cast<int32_t>(axis.number(output, tap) * number_step)});
    lists.add(taps, axis.divisor_of(output));
  }
  return lists;
}

// `counts`: how many taps the windows have that number the taps.
Taps tap_lists_of(const Windows& windows, const Windows& counts) {
  Taps taps{TapLists::each(1), TapLists::each(1), TapLists::each(1)};
  int64_t number_step = 1;
  for (size_t axis = windows.axes.size(), place = taps.size(); axis-- > 0; number_step *= counts.axes[axis].count)
    taps[--place] = tap_lists_of(windows.axes[axis], number_step);
  return taps;
}

template <WindowWork::Kind kind>
std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const OpView view = view_of(step);
  const Windows windows = windows_of(view);
  WindowWork work{.kind = kind,
                  .input = input_port(step, is_window_gradient(view) ? "diff_dst" : "src"),
                  .output = output_port(step),
                  .threads = use.threads};
  if (work.has_image()) {
    const Windows forward = forward_windows_of(view);
    work.taps = tap_lists_of(windows, forward);
    work.image = input_port(step, "src");
    work.windows = tap_lists_of(forward, forward);
  } else {
    work.taps = tap_lists_of(windows, windows);
  }
  return window_step(std::move(work));
}

// Of more positions than a kernel reads one after the other.
bool has_long_windows(const Op& op) {
  constexpr int64_t kLong = 32;
  return checked_product(op.attribute<Dims>("kernel"), "pixels of a window") > kLong;
}

bool is_faster_pool(const Graph& graph, const Op& op) {
  return has_long_windows(op) || (!has_contiguous_channels(graph, op) && !has_contiguous_rows(graph, op));
}

bool is_faster_gradient(const Graph& graph, const Op& op) {
  return has_long_windows(op) || !has_contiguous_channels(graph, op);
}

bool is_faster_resampling(const Graph& graph, const Op& op) {
  return op.attribute<std::string>("mode") != "nearest" || !has_contiguous_channels(graph, op);
}

bool always(const Graph&, const Op&) { return true; }

}  // namespace

std::vector<LibraryOp> window_ops() {
  using enum WindowWork::Kind;
  const auto op = [](OpKind kind, auto* how, bool (*is_faster)(const Graph&, const Op&)) {
    return LibraryOp{.kind = kind, .compile = how, .why_not = why_not_image, .is_faster = is_faster};
  };
  return {op(OpKind::MaxPool, compile<maximum>, is_faster_pool),
          op(OpKind::AvgPool, compile<weighted_sum>, is_faster_pool),
          op(OpKind::MaxPoolBackward, compile<gradient_of_maximum>, always),
          op(OpKind::AvgPoolBackward, compile<weighted_sum>, is_faster_gradient),
          op(OpKind::Interpolate, compile<weighted_sum>, is_faster_resampling),
          op(OpKind::InterpolateBackward, compile<weighted_sum>, always)};
}

}  // namespace lamina::cpu
