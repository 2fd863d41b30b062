// Interpolation and its gradient, by lamina's own loops. oneDNN's resampling supports neither align_corners nor the choice of
// the later one of two equally near pixels, and its gradient is slow.
#include "backends/cpu/library/library_ops.h"
#include "backends/cpu/library/windows/op_ports.h"
#include "backends/cpu/library/windows/window_primitive.h"

namespace lamina::cpu {

namespace {

// Only the extents decide which pixels are read, even if attribute scales determined them.
Taps taps_of(const Op& op, const ImageTensor& from, const ImageTensor& to) {
  const auto taps = op.attribute<std::string>("mode") == "nearest" ? nearest_taps : linear_taps;
  const Coordinates coordinates = op.attribute<std::string>("coordinate_transformation_mode") == "align_corners"
                                      ? Coordinates::align_corners
                                      : Coordinates::half_pixel;
  Taps result;
  for (size_t axis = 0; axis < 3; ++axis) result[axis] = taps(from.extents[axis], to.extents[axis], coordinates);
  return result;
}

std::unique_ptr<const Primitive> interpolate(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  WindowWork work{.kind = WindowWork::Kind::weighted_sum, .input = input_port(step, "src"), .output = output_port(step)};
  work.taps = taps_of(step.op, work.input.tensor, work.output.tensor);
  return window_primitive(std::move(work), use);
}

std::unique_ptr<const Primitive> interpolate_backward(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  WindowWork work{.kind = WindowWork::Kind::weighted_sum, .input = input_port(step, "diff_dst"), .output = output_port(step)};
  work.taps = reversed(taps_of(step.op, work.output.tensor, work.input.tensor), work.output.tensor.extents);
  return window_primitive(std::move(work), use);
}

}  // namespace

std::vector<LibraryOp> interpolate_ops() {
  const auto is_faster = [](const Graph& graph, const Op& op) {
    return op.attribute<std::string>("mode") != "nearest" || !has_contiguous_channels(graph, op);
  };
  const auto always = [](const Graph&, const Op&) { return true; };
  return {
      {.kind = OpKind::Interpolate, .compile = interpolate, .why_not = why_not_image, .is_faster = is_faster},
      {.kind = OpKind::InterpolateBackward, .compile = interpolate_backward, .why_not = why_not_image, .is_faster = always}};
}

}  // namespace lamina::cpu
