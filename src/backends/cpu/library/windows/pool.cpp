// Pools and their gradients, by lamina's own loops, where these are faster than kernels: vectors of such images are not
// contiguous, so the loops transpose them, and overlapping windows share work. oneDNN's maximum loses NaN and infinities, and
// its pools refuse windows outside the image and have fast code only for dense windows of dense tensors.
#include <limits>

#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/windows/op_ports.h"
#include "backends/cpu/library/windows/window_primitive.h"
#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// The taps of a pool's windows along each axis. With fewer than three axes, the first ones have one pixel.
Taps taps_of_windows(const OpView& view, const ImageTensor& image, const ImageTensor& positions, Divisor divisor) {
  const auto rank = static_cast<size_t>(view.input_at(0)->rank() - 2), first = 3 - rank;
  const Dims spatial(image.extents.begin() + static_cast<int64_t>(first), image.extents.end());
  const Dims kernel = per_axis(view, "kernel", rank, 1), strides = per_axis(view, "strides", rank, 1);
  const Dims dilations = per_axis(view, "dilations", rank, 1), pads = resolved_pads(view, spatial, kernel).begin;
  if (checked_product(kernel, "pixels of a window") > std::numeric_limits<int32_t>::max())
    throw Error(Status::unimplemented, place_of(view.op(), "attribute kernel"),
                join("attribute kernel is ", describe(kernel), ", allowed is a product of at most 2^31 - 1"));
  Taps taps;
  int64_t tap_step = 1;
  for (size_t axis = 3; axis-- > 0;) {
    WindowAxis window{.image = 1, .positions = 1, .kernel = 1, .stride = 1, .dilation = 1, .pad_begin = 0};
    if (axis >= first) {
      const size_t i = axis - first;
      window = {spatial[i], positions.extents[axis], kernel[i], strides[i], dilations[i], pads[i]};
    }
    taps[axis] = window_taps(window, divisor, tap_step);
    tap_step *= window.kernel;
  }
  return taps;
}

// Of more positions than a kernel reads one after the other.
bool has_long_windows(const Op& op) {
  constexpr int64_t kLong = 32;
  return checked_product(op.attribute<Dims>("kernel"), "pixels of a window") > kLong;
}

Divisor divisor_of(const Op& op) { return op.attribute<bool>("exclude_pad") ? Divisor::pixels_inside : Divisor::window; }

std::unique_ptr<const Primitive> pool(const kernel::LibraryStep& step, const PrimitiveUse& use, WindowWork::Kind kind,
                                      Divisor divisor) {
  WindowWork work{.kind = kind, .input = input_port(step, "src"), .output = output_port(step)};
  work.taps = taps_of_windows(view_of(step), work.input.tensor, work.output.tensor, divisor);
  return window_primitive(std::move(work), use);
}

std::unique_ptr<const Primitive> max_pool(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return pool(step, use, WindowWork::Kind::maximum, Divisor::one);
}

std::unique_ptr<const Primitive> avg_pool(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return pool(step, use, WindowWork::Kind::weighted_sum, divisor_of(step.op));
}

std::unique_ptr<const Primitive> pool_backward(const kernel::LibraryStep& step, const PrimitiveUse& use, WindowWork::Kind kind,
                                               Divisor divisor) {
  WindowWork work{.kind = kind, .input = input_port(step, "diff_dst"), .output = output_port(step)};
  Taps windows = taps_of_windows(view_of(step), work.output.tensor, work.input.tensor, divisor);
  work.taps = reversed(windows, work.output.tensor.extents);
  if (work.has_image()) {
    work.image = input_port(step, "src");
    work.windows = std::move(windows);
  }
  return window_primitive(std::move(work), use);
}

std::unique_ptr<const Primitive> max_pool_backward(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return pool_backward(step, use, WindowWork::Kind::gradient_of_maximum, Divisor::one);
}

std::unique_ptr<const Primitive> avg_pool_backward(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return pool_backward(step, use, WindowWork::Kind::weighted_sum, divisor_of(step.op));
}

}  // namespace

std::vector<LibraryOp> pool_ops() {
  const auto is_faster = [](const Graph& graph, const Op& op) {
    return has_long_windows(op) || (!has_contiguous_channels(graph, op) && !has_contiguous_rows(graph, op));
  };
  const auto is_faster_backward = [](const Graph& graph, const Op& op) {
    return has_long_windows(op) || !has_contiguous_channels(graph, op);
  };
  const auto always = [](const Graph&, const Op&) { return true; };
  return {{.kind = OpKind::MaxPool, .compile = max_pool, .why_not = why_not_image, .is_faster = is_faster},
          {.kind = OpKind::AvgPool, .compile = avg_pool, .why_not = why_not_image, .is_faster = is_faster},
          {.kind = OpKind::MaxPoolBackward, .compile = max_pool_backward, .why_not = why_not_image, .is_faster = always},
          {.kind = OpKind::AvgPoolBackward,
           .compile = avg_pool_backward,
           .why_not = why_not_image,
           .is_faster = is_faster_backward}};
}

}  // namespace lamina::cpu
