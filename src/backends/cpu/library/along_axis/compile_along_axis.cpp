// TopK, CumSum, CumProd and linear recurrences as data, from their ops.
#include <utility>
#include <vector>

#include "backends/cpu/dispatch/along_axis_steps.h"
#include "backends/cpu/library/along_axis/along_axis_ops.h"
#include "interface/op_schema.h"

namespace lamina::cpu {

namespace {

int axis_of(const kernel::LibraryStep& step) { return wrap_axis(step.op.attribute<int64_t>("axis"), step.inputs[0].rank()); }

int64_t extent_of(const kernel::LibraryStep& step) { return (*step.inputs[0].shape)[static_cast<size_t>(axis_of(step))]; }

// The tensors have shapes and strides.
AxisRowsProgram rows_of(const std::vector<const LogicalTensor*>& tensors, int axis) {
  const auto without_axis = [axis](Dims dims) {
    dims.erase(dims.begin() + axis);
    return dims;
  };
  AxisRowsProgram rows{.shape = without_axis(*tensors.front()->shape)};
  for (const LogicalTensor* tensor : tensors) {
    Dims strides = without_axis(tensor->strides);
    strides.push_back(tensor->strides[static_cast<size_t>(axis)]);
    rows.strides.push_back(std::move(strides));
  }
  return rows;
}

std::unique_ptr<const Primitive> compile_running(const kernel::LibraryStep& step, const PrimitiveUse& use,
                                                 RunningProgram::Combine combine) {
  return running_step({.combine = combine,
                       .dtype = step.inputs[0].dtype,
                       .extent = extent_of(step),
                       .exclusive = step.op.attribute<bool>("exclusive"),
                       .reverse = step.op.attribute<bool>("reverse"),
                       .rows = rows_of({&step.inputs[0], &step.outputs[0]}, axis_of(step)),
                       .threads = use.threads});
}

}  // namespace

std::unique_ptr<const Primitive> compile_top_k(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  const bool has_values = !step.outputs[0].is_empty_port();
  const bool has_indices = step.outputs.size() > 1 && !step.outputs[1].is_empty_port();
  return top_k_step(
      {.dtype = step.inputs[0].dtype,
       .extent = extent_of(step),
       .k = step.op.attribute<int64_t>("k"),
       .largest = step.op.attribute<bool>("largest"),
       .has_values = has_values,
       .has_indices = has_indices,
       .rows = rows_of({&step.inputs[0], &step.outputs[has_values ? 0 : 1], &step.outputs[has_indices ? 1 : 0]}, axis_of(step)),
       .threads = use.threads});
}

std::unique_ptr<const Primitive> compile_cum_sum(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return compile_running(step, use, RunningProgram::Combine::sum);
}

std::unique_ptr<const Primitive> compile_cum_prod(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  return compile_running(step, use, RunningProgram::Combine::product);
}

std::unique_ptr<const Primitive> compile_recurrence(const kernel::LibraryStep& step, const PrimitiveUse& use) {
  std::vector<const LogicalTensor*> tensors;
  for (const LogicalTensor& input : step.inputs) tensors.push_back(&input);
  for (const LogicalTensor& output : step.outputs) tensors.push_back(&output);
  return recurrence_step({.is_backward = step.op.kind == OpKind::LinearRecurrenceBackward,
                          .dtype = step.inputs[0].dtype,
                          .extent = extent_of(step),
                          .reverse = step.op.attribute<bool>("reverse"),
                          .rows = rows_of(tensors, axis_of(step)),
                          .threads = use.threads});
}

}  // namespace lamina::cpu
