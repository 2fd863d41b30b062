#include "backends/cpu/library/onednn/convolution_shape.h"

#include <algorithm>

#include "backends/cpu/library/onednn/overlap.h"
#include "interface/op_schema.h"
#include "interface/status.h"

namespace lamina::cpu::onednn {

namespace {

int64_t product(const Dims& dims) {
  int64_t result = 1;
  for (const int64_t dim : dims) result *= dim;
  return result;
}

void require_elements_apart(const kernel::LibraryStep& step, const AxesInOrder& tensor) {
  if (tensor.dims.empty()) return;
  const OpSchema& schema = schema_of(step.op.kind);
  const bool is_input = tensor.port < step.inputs.size();
  const auto ports = is_input ? existing_inputs(schema, step.op.attributes) : existing_outputs(schema, step.op.attributes);
  require_apart(step.op, ports[is_input ? tensor.port : tensor.port - step.inputs.size()]->name, tensor.dims, tensor.strides);
}

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
  using Made = kernel::ConvolutionPorts::Made;
  ConvolutionShape shape{kernel::convolution_ports(step), {}, {}, {}, {}};
  for (const AxesInOrder* tensor : {&shape.image, &shape.positions, &shape.weights, &shape.bias})
    require_elements_apart(step, *tensor);
  shape.position_extents = shape.positions.spatial();
  shape.kernel = shape.weights.spatial();
  shape.image_extents = shape.image.spatial();
  const size_t rank = shape.spatial_rank();
  shape.image_at = Dims(rank, 0);
  if (shape.made != Made::positions) drop_positions_behind(shape);
  add_positions(shape);
  // In this case oneDNN 3.2 adds values outside the image to the gradient of 16-bit weights.
  if (shape.made == Made::weights && is_smaller_than_window(shape)) add_pads(shape);
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
    kernel::move_axis(operand, channels, 1);
    if (rank == 3) {
      operand.dims.insert(operand.dims.begin() + 2, 1);
      operand.strides.insert(operand.strides.begin() + 2, 0);
    }
    operands.push_back(std::move(operand));
  }
  return operands;
}

}  // namespace lamina::cpu::onednn
