// Kernels for tests without a device: the result of lowering a graph's first partition.
#pragma once

#include "backends/backend.h"
#include "backends/gpu/emit/emit_kernel.h"
#include "compiler/compile.h"
#include "kernels/plan.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"
#include "support/library_step.h"

namespace lamina::testing {

// The kernel of the first step, or of a later one.
inline kernel::Kernel first_kernel_of(const Graph& graph, size_t step = 0) {
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
  return std::get<kernel::KernelStep>(plan.steps.at(step)).kernel;
}

inline Graph cum_sum_graph(DataType dtype, const Dims& shape, bool exclusive, bool reverse) {
  GraphBuilder g;
  g.op(OpKind::CumSum, {g.input(dtype, shape)}, {{"axis", int64_t{1}}, {"exclusive", exclusive}, {"reverse", reverse}}, dtype);
  return g.finish();
}

inline Graph recurrence_graph(DataType dtype, const Dims& shape, bool is_backward) {
  GraphBuilder g;
  const Attributes attributes{{"axis", int64_t{1}}};
  const auto x = g.input(dtype, shape), y = g.input(dtype, shape);
  if (is_backward)
    g.multi(OpKind::LinearRecurrenceBackward, {x, y, g.input(dtype, shape)}, attributes, {dtype, dtype});
  else
    g.op(OpKind::LinearRecurrence, {x, y}, attributes, dtype);
  return g.finish();
}

inline Graph top_k_graph(DataType dtype, const Dims& shape, bool largest) {
  GraphBuilder g;
  g.multi(OpKind::TopK, {g.input(dtype, shape)}, {{"k", int64_t{2}}, {"largest", largest}}, {dtype, DataType::s64});
  return g.finish();
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

// Two images with pads around them and five channels; the windows are `stride` apart along the first axis. A pool's result is
// multiplied.
inline Graph pool_graph(OpKind kind, DataType dtype, const std::string& format, const Dims& windows,
                        const Dims& image = {9, 12}, int64_t stride = 2) {
  const bool backward = kind == OpKind::MaxPoolBackward || kind == OpKind::AvgPoolBackward;
  Attributes attributes{{"kernel", windows},
                        {"strides", Dims{stride, 1}},
                        {"pads_begin", Dims{1, 1}},
                        {"pads_end", Dims{1, 0}},
                        {"data_format", format}};
  if (kind == OpKind::AvgPool || kind == OpKind::AvgPoolBackward) attributes["exclude_pad"] = true;
  const auto shape = [&](int64_t height, int64_t width) {
    return format == "NXC" ? Dims{2, height, width, 5} : Dims{2, 5, height, width};
  };
  const Dims src = shape(image[0], image[1]), dst = shape((image[0] + 2 - windows[0]) / stride + 1, image[1] + 2 - windows[1]);
  GraphBuilder g;
  std::vector<uint64_t> inputs;
  if (kind == OpKind::AvgPoolBackward)
    attributes["src_shape"] = src;
  else
    inputs.push_back(g.input(dtype, src));
  if (backward) inputs.push_back(g.input(dtype, dst));
  const auto result = g.op(kind, inputs, attributes);
  if (!backward) g.op(OpKind::Multiply, {result, g.input(dtype, dst)});
  return g.finish();
}

// Images of 5 x 7 to 9 x 4.
inline Graph interpolate_graph(OpKind kind, const std::string& mode, const std::string& format) {
  const bool last = format == "NXC", backward = kind == OpKind::InterpolateBackward;
  const Dims src = last ? Dims{2, 5, 7, 3} : Dims{2, 3, 5, 7}, dst = last ? Dims{2, 9, 4, 3} : Dims{2, 3, 9, 4};
  GraphBuilder g;
  std::vector<uint64_t> inputs{g.input(DataType::f32, src)};
  if (backward) inputs.push_back(g.input(DataType::f32, dst));
  g.op(kind, inputs, {{"mode", mode}, {"sizes", Dims{9, 4}}, {"data_format", format}});
  return g.finish();
}

}  // namespace lamina::testing
