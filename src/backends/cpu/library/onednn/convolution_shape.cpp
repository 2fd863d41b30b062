#include "backends/cpu/library/onednn/convolution_shape.h"

#include <algorithm>
#include <string_view>

#include "backends/cpu/library/onednn/overlap.h"
#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

int64_t product(const Dims& dims) {
  int64_t result = 1;
  for (const int64_t dim : dims) result *= dim;
  return result;
}

// The ports of an op kind by their role in the window.
struct Roles {
  ConvolutionShape::Made made;
  std::string_view image, positions, weights;
  bool transposed_pads = false;  // auto_pad uses the rule of ConvTranspose
};

Roles roles_of(OpKind kind) {
  using Made = ConvolutionShape::Made;
  switch (kind) {
    case OpKind::Convolution: return {Made::positions, "src", "dst", "weights"};
    case OpKind::ConvTransposeBackwardData: return {Made::positions, "diff_dst", "diff_src", "weights"};
    case OpKind::ConvolutionBackwardData: return {Made::image, "diff_src", "diff_dst", "weights"};
    case OpKind::ConvTranspose: return {Made::image, "dst", "src", "weights", true};
    case OpKind::ConvolutionBackwardWeights: return {Made::weights, "src", "diff_dst", "diff_weights"};
    case OpKind::ConvTransposeBackwardWeights: return {Made::weights, "diff_dst", "src", "diff_weights", true};
    default: fail_check("a convolution", __FILE__, __LINE__, std::string(name_of(kind)));
  }
}

std::vector<const LogicalTensor*> ports(const std::vector<LogicalTensor>& tensors) {
  std::vector<const LogicalTensor*> result;
  for (const LogicalTensor& tensor : tensors) result.push_back(tensor.is_empty_port() ? nullptr : &tensor);
  return result;
}

// The tensor at a port of the op, without dims if it is absent.
AxesInOrder find(const kernel::LibraryStep& step, std::string_view port) {
  const OpSchema& schema = schema_of(step.op.kind);
  size_t at = port_position(schema.inputs, step.op.attributes, port);
  const bool is_input = at != SIZE_MAX;
  if (!is_input) at = port_position(schema.outputs, step.op.attributes, port);
  const std::vector<LogicalTensor>& tensors = is_input ? step.inputs : step.outputs;
  if (at >= tensors.size() || tensors[at].is_empty_port()) return {};
  require_apart(step.op, port, *tensors[at].shape, tensors[at].strides);
  return {tensors[at].dtype, *tensors[at].shape, tensors[at].strides, is_input ? at : step.inputs.size() + at};
}

void move_axis(AxesInOrder& tensor, size_t from, size_t to) {
  for (Dims* list : {&tensor.dims, &tensor.strides}) {
    const int64_t entry = (*list)[from];
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(from));
    list->insert(list->begin() + static_cast<std::ptrdiff_t>(to), entry);
  }
}

AxesInOrder data(const kernel::LibraryStep& step, std::string_view port) {
  AxesInOrder tensor = find(step, port);
  if (has_channels_last(step.op)) move_axis(tensor, tensor.dims.size() - 1, 1);
  return tensor;
}

// OIX of a convolution and IOX of a transposed one are already in order. XIO and XOI have the taps first and the two channel
// axes reversed.
AxesInOrder weights(const kernel::LibraryStep& step, std::string_view port) {
  AxesInOrder tensor = find(step, port);
  if (step.op.attribute<std::string>("weights_format").back() == 'X') return tensor;
  const size_t last = tensor.dims.size() - 1;
  move_axis(tensor, last, 0);
  move_axis(tensor, last, 1);
  return tensor;
}

Dims spatial(const AxesInOrder& tensor) { return {tensor.dims.begin() + 2, tensor.dims.end()}; }

// oneDNN's code for one spatial axis is much slower than that for two.
void add_spatial_axis(ConvolutionShape& shape) {
  for (AxesInOrder* tensor : {&shape.image, &shape.positions, &shape.weights}) {
    tensor->strides.insert(tensor->strides.begin() + 2, tensor->dims[2] * tensor->strides[2]);
    tensor->dims.insert(tensor->dims.begin() + 2, 1);
  }
  for (Dims* list : {&shape.image_extents, &shape.position_extents, &shape.kernel, &shape.strides, &shape.dilations})
    list->insert(list->begin(), 1);
  for (Dims* list : {&shape.image_at, &shape.pads_begin}) list->insert(list->begin(), 0);
  shape.slab_axis = 1;
}

// Positions whose window is entirely behind the image do not contribute to an image or to weights.
void drop_positions_behind(ConvolutionShape& shape) {
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis) {
    const int64_t last = (shape.image_extents[axis] - 1 + shape.pads_begin[axis]) / shape.strides[axis];
    shape.position_extents[axis] = std::min(shape.position_extents[axis], std::max<int64_t>(last, 0) + 1);
  }
}

// Adds positions until the window would leave the image.
void add_positions(ConvolutionShape& shape) {
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis) {
    const int64_t last_start = shape.image_extents[axis] + shape.pads_begin[axis] - shape.reach(axis);
    if (last_start >= 0)
      shape.position_extents[axis] = std::max(shape.position_extents[axis], last_start / shape.strides[axis] + 1);
  }
}

// Makes the pads a part of the image.
void add_pads(ConvolutionShape& shape) {
  shape.image_at = shape.pads_begin;
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis) {
    const int64_t seen = (shape.position_extents[axis] - 1) * shape.strides[axis] + shape.reach(axis);
    shape.image_extents[axis] = std::max(seen, shape.image_at[axis] + shape.image_extents[axis]);
    shape.pads_begin[axis] = 0;
  }
}

bool is_smaller_than_window(const ConvolutionShape& shape) {
  for (size_t axis = 0; axis < shape.spatial_rank(); ++axis)
    if (shape.image_extents[axis] < shape.reach(axis)) return true;
  return false;
}

}  // namespace

int64_t ConvolutionShape::image_elements() const { return image.dims[1] * product(image_extents); }
int64_t ConvolutionShape::position_elements() const { return positions.dims[1] * product(position_extents); }
int64_t ConvolutionShape::weight_elements() const { return product(weights.dims); }
double ConvolutionShape::operations() const {
  return 2.0 * static_cast<double>(product(position_extents)) * static_cast<double>(weight_elements());
}

ConvolutionShape convolution_shape(const kernel::LibraryStep& step) {
  const Roles roles = roles_of(step.op.kind);
  ConvolutionShape shape;
  shape.made = roles.made;
  shape.image = data(step, roles.image);
  shape.positions = data(step, roles.positions);
  shape.weights = weights(step, roles.weights);
  shape.bias = find(step, "bias");
  shape.groups = step.op.attribute<int64_t>("groups");
  shape.position_extents = spatial(shape.positions);
  shape.kernel = spatial(shape.weights);
  shape.image_extents = spatial(shape.image);
  const size_t rank = shape.spatial_rank();
  shape.image_at = Dims(rank, 0);
  const OpView view(step.op, schema_of(step.op.kind), ports(step.inputs), ports(step.outputs));
  shape.strides = per_axis(view, "strides", rank, 1);
  shape.dilations = per_axis(view, "dilations", rank, 1);
  shape.pads_begin = resolved_pads(view, shape.image_extents, shape.kernel, roles.transposed_pads).begin;
  if (roles.made != ConvolutionShape::Made::positions) drop_positions_behind(shape);
  add_positions(shape);
  // In this case oneDNN 3.2 adds values outside the image to the gradient of 16-bit weights.
  if (roles.made == ConvolutionShape::Made::weights && is_smaller_than_window(shape)) add_pads(shape);
  if (rank == 1) add_spatial_axis(shape);
  return shape;
}

std::vector<AxesInOrder> operands_in_order(const kernel::LibraryStep& step) {
  std::vector<AxesInOrder> operands;
  if (!step.post_ops) return operands;
  const size_t rank = step.outputs[0].shape->size();
  const size_t channels = has_channels_last(step.op) ? rank - 1 : 1;
  for (const PostOp& post_op : step.post_ops->ops) {
    if (post_op.operand < 0) continue;
    const size_t number = operands.size();
    const LogicalTensor& tensor = step.operands[number];
    AxesInOrder operand{tensor.dtype, Dims(rank, 1), Dims(rank, 0), step.inputs.size() + step.outputs.size() + number};
    const size_t first = post_op.op.kind == OpKind::BiasAdd ? channels : rank - tensor.shape->size();
    for (size_t axis = 0; axis < tensor.shape->size(); ++axis) {
      operand.dims[first + axis] = (*tensor.shape)[axis];
      if ((*tensor.shape)[axis] > 1) operand.strides[first + axis] = tensor.strides[axis];
    }
    move_axis(operand, channels, 1);
    if (rank == 3) {
      operand.dims.insert(operand.dims.begin() + 2, 1);
      operand.strides.insert(operand.strides.begin() + 2, 0);
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

}  // namespace lamina::cpu::onednn
