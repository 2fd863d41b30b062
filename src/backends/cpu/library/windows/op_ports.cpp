#include "backends/cpu/library/windows/op_ports.h"

#include "interface/status.h"

namespace lamina::cpu {

namespace {

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
  const int spatial = tensor.rank() - 2;
  return spatial <= 3 ? "" : join(schema_of(op.kind).inputs[0].name, " has ", spatial, " spatial axes, allowed is 1 to 3");
}

}  // namespace lamina::cpu
