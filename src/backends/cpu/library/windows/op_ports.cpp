#include "backends/cpu/library/windows/op_ports.h"

#include "backends/cpu/library/windows/tuning.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

// `tensor` has batch, channels and one to three spatial axes.
ImageTensor as_image(const LogicalTensor& tensor, bool channels_last) {
  const Dims &shape = *tensor.shape, &strides = tensor.strides;
  const size_t channel_axis = channels_last ? shape.size() - 1 : 1, first = channels_last ? 1 : 2, axes = shape.size() - 2;
  ImageTensor pixels{tensor.dtype, shape[0], shape[channel_axis], strides[0], strides[channel_axis], {1, 1, 1}, {0, 0, 0}};
  for (size_t i = 0; i < axes; ++i) {
    pixels.extents[3 - axes + i] = shape[first + i];
    pixels.strides[3 - axes + i] = strides[first + i];
  }
  return pixels;
}

ImagePort port_of(const kernel::LibraryStep& step, size_t arg, const LogicalTensor& tensor) {
  return {arg, as_image(tensor, has_channels_last(step.op))};
}

std::vector<const LogicalTensor*> given(const std::vector<LogicalTensor>& tensors) {
  std::vector<const LogicalTensor*> result;
  for (const LogicalTensor& tensor : tensors) result.push_back(tensor.is_empty_port() ? nullptr : &tensor);
  return result;
}

}  // namespace

OpView view_of(const kernel::LibraryStep& step) {
  return {step.op, schema_of(step.op.kind), given(step.inputs), given(step.outputs)};
}

ImagePort input_port(const kernel::LibraryStep& step, std::string_view name) {
  const size_t port = port_position(schema_of(step.op.kind).inputs, step.op.attributes, name);
  return port_of(step, port, step.inputs[port]);
}

ImagePort output_port(const kernel::LibraryStep& step) { return port_of(step, step.inputs.size(), step.outputs[0]); }

std::string why_not_image(const Graph& graph, const Op& op) {
  const LogicalTensor& tensor = graph.tensor(op.inputs[0]);
  if (tensor.dtype == DataType::f64 || is_byte_integer(tensor.dtype))
    return join(schema_of(op.kind).inputs[0].name, " is ", name_of(tensor.dtype), ", allowed are f32, bf16 and f16");
  const int spatial = tensor.rank() - 2;
  return spatial <= 3 ? "" : join(schema_of(op.kind).inputs[0].name, " has ", spatial, " spatial axes, allowed is 1 to 3");
}

namespace {

// Whether all images of the op have at least `least` contiguous positions along `axis`.
bool are_contiguous_along(const Graph& graph, const Op& op, size_t axis, int64_t least) {
  for (const auto* ports : {&op.inputs, &op.outputs}) {
    for (const ValueIndex value : *ports) {
      const LogicalTensor* const tensor = value == kNoValue ? nullptr : &graph.tensor(value);
      if (tensor == nullptr || tensor->dtype == DataType::s32) continue;  // a shape
      if (!tensor->has_full_shape()) return false;
      const Dims& strides = tensor->has_strides() ? tensor->strides : dense_strides(*tensor->shape);
      if (strides[axis] != 1 || (*tensor->shape)[axis] < least) return false;
    }
  }
  return true;
}

}  // namespace

bool has_contiguous_channels(const Graph& graph, const Op& op) {
  const int rank = graph.tensor(op.inputs[0]).rank();
  return rank > 1 && are_contiguous_along(graph, op, has_channels_last(op) ? static_cast<size_t>(rank) - 1 : 1,
                                          window_tuning::kLeastChannels);
}

// Few channels leave lanes empty if they are transposed, so kernels pay off for shorter rows.
bool has_contiguous_rows(const Graph& graph, const Op& op) {
  const LogicalTensor& first = graph.tensor(op.inputs[0]);
  const int rank = first.rank();
  if (rank <= 2) return false;
  const size_t last = static_cast<size_t>(rank) - 1;
  const bool is_channels_last = has_channels_last(op);
  const bool has_few = first.has_full_shape() && (*first.shape)[is_channels_last ? last : 1] <= window_tuning::kFewChannels;
  return are_contiguous_along(graph, op, is_channels_last ? last - 1 : last,
                              has_few ? window_tuning::kLeastLineOfFewChannels : window_tuning::kLeastLine);
}

}  // namespace lamina::cpu
