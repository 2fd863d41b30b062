// Kernels for tests without a device: the result of lowering a graph's first partition.
#pragma once

#include "backends/backend.h"
#include "backends/gpu/emit/emit_kernel.h"
#include "compiler/compile.h"
#include "kernels/plan.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::testing {

inline kernel::Kernel first_kernel_of(const Graph& graph) {
  const Partition partition = partition_graph(graph, PartitionPolicy::fusion, gpu_capabilities()).at(0);
  std::vector<LogicalTensor> ins, outs;
  for (const ValueIndex v : partition.inputs) ins.push_back(graph.tensor(v));
  for (const ValueIndex v : partition.outputs) {
    outs.push_back(graph.tensor(v));
    if (!outs.back().has_strides()) outs.back().strides = dense_strides(*outs.back().shape);
    outs.back().layout = LayoutType::strided;
  }
  const Subgraph subgraph = extract_subgraph(partition, ins, outs);
  const kernel::Plan plan = compiler::plan_subgraph(subgraph, {.name = "test", .alignment = 256});
  return std::get<kernel::KernelStep>(plan.steps.at(0)).kernel;
}

inline Graph norm_graph(DataType dtype, int64_t rows, int64_t size) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size});
  g.multi(OpKind::LayerNorm, {x, g.input(DataType::f32, {size}), g.input(DataType::f32, {size})}, {},
          {dtype, DataType::f32, DataType::f32});
  return g.finish();
}

inline Graph norm_backward_graph(DataType dtype, int64_t rows, int64_t size) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), dy = g.input(dtype, {rows, size});
  g.multi(OpKind::LayerNormBackward,
          {x, dy, g.input(DataType::f32, {rows}), g.input(DataType::f32, {rows}), g.input(DataType::f32, {size})}, {},
          {dtype, DataType::f32, DataType::f32});
  return g.finish();
}

inline Graph residual_norm_graph(DataType dtype, int64_t rows, int64_t size) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), r = g.input(dtype, {rows, size});
  const auto sum = g.op(OpKind::Add, {x, r});
  g.op(OpKind::LayerNorm, {sum, g.input(DataType::f32, {size}), g.input(DataType::f32, {size})}, {{"keep_stats", false}});
  g.output(sum);
  return g.finish();
}

inline Graph unary_graph(OpKind kind, DataType dtype, const Dims& shape) {
  GraphBuilder g;
  g.op(kind, {g.input(dtype, shape)});
  return g.finish();
}

inline Graph softmax_graph(DataType dtype, const Dims& shape, int64_t axis) {
  GraphBuilder g;
  g.op(OpKind::SoftMax, {g.input(dtype, shape)}, {{"axis", axis}});
  return g.finish();
}

}  // namespace lamina::testing
