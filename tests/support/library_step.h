// Library steps without a plan.
#pragma once

#include "interface/graph.h"
#include "kernels/plan.h"

namespace lamina::testing {

// The only op of a graph, as a library step. Tensors without strides are dense.
inline kernel::LibraryStep library_step_of(const Graph& graph) {
  kernel::LibraryStep step;
  step.op = graph.ops().front();
  const auto dense = [&](ValueIndex value) {
    LogicalTensor tensor = value == kNoValue ? LogicalTensor{} : graph.tensor(value);
    if (value != kNoValue && tensor.strides.empty()) tensor.strides = dense_strides(*tensor.shape);
    return tensor;
  };
  for (const ValueIndex value : step.op.inputs) step.inputs.push_back(dense(value));
  for (const ValueIndex value : step.op.outputs) step.outputs.push_back(dense(value));
  return step;
}

}  // namespace lamina::testing
