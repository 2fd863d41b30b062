// Pools, Interpolate and their gradients, by lamina's own loops, where these are faster than kernels: vectors of such images
// are not contiguous, so the loops transpose them, and overlapping windows share work. oneDNN's maximum loses NaN and
// infinities, and its pools refuse windows outside the image and have fast code only for dense windows of dense tensors. Its
// resampling supports neither align_corners nor the choice of the later one of two equally near pixels, and its gradient is
// slow.
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/windows/op_ports.h"
#include "backends/cpu/library/windows/window_primitive.h"
#include "interface/shape_rules.h"

namespace lamina::cpu {

namespace {

template <WindowWork::Kind kind>
std::unique_ptr<const Primitive> compile(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const OpView view = view_of(step);
  const Windows windows = windows_of(view);
  WindowWork work{
      .kind = kind, .input = input_port(step, is_window_gradient(view) ? "diff_dst" : "src"), .output = output_port(step)};
  if (work.has_image()) {
    const Windows forward = forward_windows_of(view);
    work.taps = tap_lists_of(windows, forward);
    work.image = input_port(step, "src");
    work.windows = tap_lists_of(forward, forward);
  } else {
    work.taps = tap_lists_of(windows, windows);
  }
  return window_primitive(std::move(work), use);
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
