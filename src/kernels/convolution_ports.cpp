#include "kernels/convolution_ports.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"

namespace lamina::kernel {

namespace {

// The ports of an op kind by their role in the window.
struct Roles {
  OpKind kind;
  ConvolutionPorts::Made made;
  std::string_view image, positions, weights;
  bool transposed_pads = false;  // auto_pad uses the rule of ConvTranspose
};

using Made = ConvolutionPorts::Made;
constexpr Roles kRoles[] = {
    {OpKind::Convolution, Made::positions, "src", "dst", "weights"},
    {OpKind::ConvTransposeBackwardData, Made::positions, "diff_dst", "diff_src", "weights"},
    {OpKind::ConvolutionBackwardData, Made::image, "diff_src", "diff_dst", "weights"},
    {OpKind::ConvTranspose, Made::image, "dst", "src", "weights", true},
    {OpKind::ConvolutionBackwardWeights, Made::weights, "src", "diff_dst", "diff_weights"},
    {OpKind::ConvTransposeBackwardWeights, Made::weights, "diff_dst", "src", "diff_weights", true},
};

const Roles& roles_of(OpKind kind) {
  for (const Roles& roles : kRoles)
    if (roles.kind == kind) return roles;
  fail_check("a convolution", __FILE__, __LINE__, std::string(name_of(kind)));
}

std::vector<const LogicalTensor*> ports(const std::vector<LogicalTensor>& tensors) {
  std::vector<const LogicalTensor*> result;
  for (const LogicalTensor& tensor : tensors) result.push_back(tensor.is_empty_port() ? nullptr : &tensor);
  return result;
}

// The tensor at a port of the op, without dims if it is absent.
AxesInOrder find(const LibraryStep& step, std::string_view port) {
  const OpSchema& schema = schema_of(step.op.kind);
  size_t at = port_position(schema.inputs, step.op.attributes, port);
  const bool is_input = at != SIZE_MAX;
  if (!is_input) at = port_position(schema.outputs, step.op.attributes, port);
  const std::vector<LogicalTensor>& tensors = is_input ? step.inputs : step.outputs;
  if (at >= tensors.size() || tensors[at].is_empty_port()) return {};
  return {tensors[at].dtype, *tensors[at].shape, tensors[at].strides, is_input ? at : step.inputs.size() + at};
}

AxesInOrder data(const LibraryStep& step, std::string_view port) {
  AxesInOrder tensor = find(step, port);
  if (has_channels_last(step.op)) move_axis(tensor, tensor.dims.size() - 1, 1);
  return tensor;
}

// OIX of a convolution and IOX of a transposed one are already in order. XIO and XOI have the taps first and the two channel
// axes reversed.
AxesInOrder weights(const LibraryStep& step, std::string_view port) {
  AxesInOrder tensor = find(step, port);
  if (step.op.attribute<std::string>("weights_format").back() == 'X') return tensor;
  const size_t last = tensor.dims.size() - 1;
  move_axis(tensor, last, 0);
  move_axis(tensor, last, 1);
  return tensor;
}

}  // namespace

void move_axis(AxesInOrder& tensor, size_t from, size_t to) {
  for (Dims* list : {&tensor.dims, &tensor.strides}) {
    const int64_t entry = (*list)[from];
    list->erase(list->begin() + static_cast<std::ptrdiff_t>(from));
    list->insert(list->begin() + static_cast<std::ptrdiff_t>(to), entry);
  }
}

std::vector<OpKind> convolution_kinds() {
  std::vector<OpKind> kinds;
  for (const Roles& roles : kRoles) kinds.push_back(roles.kind);
  return kinds;
}

bool is_convolution(OpKind kind) {
  return std::any_of(std::begin(kRoles), std::end(kRoles), [kind](const Roles& roles) { return roles.kind == kind; });
}

ConvolutionPorts convolution_ports(const LibraryStep& step) {
  const Roles& roles = roles_of(step.op.kind);
  ConvolutionPorts found;
  found.made = roles.made;
  found.image = data(step, roles.image);
  found.positions = data(step, roles.positions);
  found.weights = weights(step, roles.weights);
  found.bias = find(step, "bias");
  found.groups = step.op.attribute<int64_t>("groups");
  const OpView view(step.op, schema_of(step.op.kind), ports(step.inputs), ports(step.outputs));
  const Dims image = found.image.spatial(), kernel = found.weights.spatial();
  found.strides = per_axis(view, "strides", kernel.size(), 1);
  found.dilations = per_axis(view, "dilations", kernel.size(), 1);
  found.pads_begin = resolved_pads(view, image, kernel, roles.transposed_pads).begin;
  return found;
}

}  // namespace lamina::kernel
