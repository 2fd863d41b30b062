#include "passes/tiling/row_view.h"

#include "interface/op_schema.h"

namespace lamina {

namespace {

// Dims of the iteration: batch 0..b-1, rows b, columns b + 1, summed dim b + 2. Batch dims of a side are aligned at the end;
// extent 1 is broadcast.
DimMap side_map(const Dims& shape, size_t batch, int row, int column) {
  DimMap map;
  const size_t own = shape.size() - 2;
  for (size_t d = 0; d < own; ++d) {
    const int dim = static_cast<int>(batch - own + d);
    map.push_back(shape[d] == 1 ? AxisRun{} : AxisRun{dim, 1});
  }
  for (const auto& [extent, dim] : {std::pair{shape[own], row}, {shape[own + 1], column}})
    map.push_back(extent == 1 ? AxisRun{} : AxisRun{dim, 1});
  return map;
}

DimMap bias_map(const Dims& shape, size_t dst_rank) {
  DimMap map;
  for (size_t d = 0; d < shape.size(); ++d)
    map.push_back(shape[d] == 1 ? AxisRun{} : AxisRun{static_cast<int>(dst_rank - shape.size() + d), 1});
  return map;
}

IterationView product_view(const Graph& graph, const Op& op) {
  IterationView view;
  const Dims &src = *graph.tensor(op.inputs[0]).shape, &weights = *graph.tensor(op.inputs[1]).shape,
             &dst = *graph.tensor(op.outputs[0]).shape;
  if (src.size() < 2 || weights.size() < 2) {
    view.why_not = "a side of the product is a vector";
    return view;
  }
  const bool transpose_a = op.attribute<bool>("transpose_a"), transpose_b = op.attribute<bool>("transpose_b");
  const size_t batch = dst.size() - 2;
  const int row = static_cast<int>(batch), column = row + 1, summed = row + 2;
  view.extents = dst;
  view.extents.push_back(src[src.size() - (transpose_a ? 2 : 1)]);
  view.inner.assign(view.extents.size(), false);
  view.inner[static_cast<size_t>(column)] = view.inner[static_cast<size_t>(summed)] = true;
  view.inputs = {transpose_a ? side_map(src, batch, summed, row) : side_map(src, batch, row, summed),
                 transpose_b ? side_map(weights, batch, column, summed) : side_map(weights, batch, summed, column)};
  if (op.inputs.size() > 2) view.inputs.push_back({});
  if (op.inputs.size() > 2 && op.inputs[2] != kNoValue)
    view.inputs[2] = bias_map(*graph.tensor(op.inputs[2]).shape, dst.size());
  view.outputs = {side_map(dst, batch, row, column)};
  view.column_outputs = {false};
  return view;
}

// The offset of a slice and the repeat counts refer to the whole tensor, so rows are not cut along these dims.
void keep_whole_where_parts_differ(IterationView& view, const Dims& src, const Dims& dst) {
  const size_t added = dst.size() - src.size();
  for (size_t axis = 0; axis < dst.size(); ++axis) {
    const AxisRun run = view.outputs[0][axis];
    if (run.count > 0 && (axis < added || src[axis - added] != dst[axis])) view.inner[static_cast<size_t>(run.first)] = true;
  }
}

}  // namespace

bool is_matrix_product(const Op& op) { return op.kind == OpKind::MatMul; }

int axis_of_positions(const Graph& graph, const Op& op) {
  return op.kind == OpKind::GenIndex ? wrap_axis(op.attribute<int64_t>("axis"), graph.tensor(op.outputs[0]).rank()) : -1;
}

IterationView row_view(const Graph& graph, const Op& op) {
  if (is_matrix_product(op)) return product_view(graph, op);
  IterationView view = iteration_view(graph, op);
  const LoopNest nest = schema_of(op.kind).nest;
  if (nest == LoopNest::gathered || nest == LoopNest::scattered)
    view.why_not = "its indices are checked before a whole tensor is read";
  if (nest == LoopNest::windows) view.why_not = "its windows read other rows";
  if ((nest == LoopNest::sliced || nest == LoopNest::repeated) && view.why_not.empty())
    keep_whole_where_parts_differ(view, *graph.tensor(op.inputs[0]).shape, *graph.tensor(op.outputs[0]).shape);
  return view;
}

}  // namespace lamina
