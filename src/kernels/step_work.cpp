#include "kernels/step_work.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "interface/data_type.h"
#include "interface/op_schema.h"
#include "kernels/convolution_ports.h"

namespace lamina::kernel {

namespace {

int64_t bytes_of_tensors(const std::vector<LogicalTensor>& tensors) {
  int64_t bytes = 0;
  for (const LogicalTensor& tensor : tensors)
    if (!tensor.is_empty_port()) bytes += bytes_of(tensor.dtype, tensor.element_count());
  return bytes;
}

// ---- kernels

int operations_of(MapOp op) {
  switch (op) {
    case MapOp::equal:
    case MapOp::less:
    case MapOp::less_equal:
    case MapOp::greater:
    case MapOp::greater_equal:
    case MapOp::logical_and:
    case MapOp::logical_not:
    case MapOp::bit_and:
    case MapOp::bit_or:
    case MapOp::bit_xor:
    case MapOp::shift_left:
    case MapOp::shift_right:
    case MapOp::select:
    case MapOp::cast:
    case MapOp::cast_to_odd:
    case MapOp::round_to:
    case MapOp::philox_word: return 0;
    case MapOp::fma: return 2;
    default: return 1;
  }
}

// For each element of a row for which the node is computed, or whose operand it combines.
double operations_of(const Node& node) {
  switch (node.kind) {
    case NodeKind::map: return operations_of(node.op);
    case NodeKind::reduce:
    case NodeKind::column_sum:
    case NodeKind::segment_sum: return 1;
    case NodeKind::sum_entries: return node.value;
    case NodeKind::moments: return 4;  // the sum; the difference from the mean, its square, and their sum
    case NodeKind::center: return node.operands[2] < 0 ? 1 : 2;
    default: return 0;
  }
}

double arithmetic_of(const Kernel& kernel) {
  double per_row = 0, per_element = 0;
  for (const Node& node : kernel.nodes) {
    const bool combines = reduces_rows(node) || node.kind == NodeKind::column_sum;
    (combines || node.per_element ? per_element : per_row) += operations_of(node);
  }
  const auto rows = static_cast<double>(kernel.row_count());
  return rows * (per_row + static_cast<double>(kernel.row_size()) * per_element);
}

// ---- library steps

double elements(const LogicalTensor& tensor) { return static_cast<double>(tensor.element_count()); }

double arithmetic_of_product(const LibraryStep& step) {
  const Dims& src = *step.inputs[0].shape;
  const bool transposed = step.op.attributes.contains("transpose_a") && step.op.attribute<bool>("transpose_a");
  const int64_t k = src.size() < 2 || !transposed ? src.back() : src[src.size() - 2];
  return 2 * elements(step.outputs[0]) * static_cast<double>(k);
}

// Every weight is multiplied once per position of the window, whichever of the three tensors is computed.
double arithmetic_of_convolution(const LibraryStep& step) {
  const ConvolutionPorts ports = convolution_ports(step);
  const auto product = [](const Dims& dims) { return std::accumulate(dims.begin(), dims.end(), 1.0, std::multiplies<>()); };
  const int64_t channels = ports.positions.dims[1];
  return channels == 0 ? 0 : 2 * product(ports.weights.dims) * product(ports.positions.dims) / static_cast<double>(channels);
}

double arithmetic_of(const LibraryStep& step) {
  if (is_convolution(step.op.kind)) return arithmetic_of_convolution(step);
  if (schema_of(step.op.kind).traits.contracts) return arithmetic_of_product(step);
  double largest = 0;  // pools and resampling: an operation per element that is read or written
  for (const auto* tensors : {&step.inputs, &step.outputs})
    for (const LogicalTensor& tensor : *tensors)
      if (!tensor.is_empty_port()) largest = std::max(largest, elements(tensor));
  return largest;
}

// ---- tiled steps

// All tiles are counted as if they were full ones.
double arithmetic_of(const TiledStep& step) {
  double of_a_tile = 0, of_sums = 0;
  for (const PlanStep& part : step.plans.front().steps) of_a_tile += kernel::arithmetic_of(part);
  for (const Plan& plan : step.finish)
    for (const PlanStep& part : plan.steps) of_sums += kernel::arithmetic_of(part);
  double entries = 1, tiles = 1;
  for (size_t loop = 0; loop < step.loops.size(); ++loop) {
    const auto extent = static_cast<double>(step.loops[loop]);
    if (loop < step.row_loop) entries *= extent;
    if (loop == step.row_loop) tiles *= extent / static_cast<double>(std::max<int64_t>(step.rows, 1));
    if (loop > step.row_loop) tiles *= extent / static_cast<double>(std::max<int64_t>(step.columns, 1));
  }
  return entries * (tiles * of_a_tile + of_sums);
}

}  // namespace

int64_t moved_bytes(const PlanStep& step) {
  if (const auto* kernel = std::get_if<KernelStep>(&step)) return moved_bytes(kernel->kernel);
  if (const auto* tiled = std::get_if<TiledStep>(&step))
    return bytes_of_tensors(tiled->inputs) + bytes_of_tensors(tiled->outputs);
  const auto& library = std::get<LibraryStep>(step);
  return bytes_of_tensors(library.inputs) + bytes_of_tensors(library.outputs) + bytes_of_tensors(library.operands);
}

double arithmetic_of(const PlanStep& step) {
  if (const auto* kernel = std::get_if<KernelStep>(&step)) return arithmetic_of(kernel->kernel);
  if (const auto* tiled = std::get_if<TiledStep>(&step)) return arithmetic_of(*tiled);
  return arithmetic_of(std::get<LibraryStep>(step));
}

}  // namespace lamina::kernel
