#include "kernels/cut_graph.h"

#include <algorithm>
#include <set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/graph_editor.h"
#include "passes/tiling/row_view.h"

namespace lamina::kernel {

namespace {

// Positions along an axis that is cut begin anew in each tile: they come from outside instead.
bool is_given(const Graph& graph, const TileRegion& region, const Op& op) {
  const int axis = axis_of_positions(graph, op);
  return axis >= 0 && region.cut.at(op.outputs[0])[static_cast<size_t>(axis)] >= 0;
}

LogicalTensor slice(const LogicalTensor& tensor, const AxisLoops& cut, const Dims& loops, int64_t rows) {
  LogicalTensor part = tensor;
  for (size_t axis = 0; axis < cut.size(); ++axis) {
    if (cut[axis] >= 0) (*part.shape)[axis] = static_cast<size_t>(cut[axis]) + 1 == loops.size() ? rows : 1;
  }
  return part;
}

}  // namespace

RegionBorder border_of(const Graph& graph, const std::vector<FusionGroup>& groups, const TileRegion& region,
                       const std::vector<bool>& needed) {
  RegionBorder border;
  std::vector<int> ops;
  for (const size_t group : region.groups) ops.insert(ops.end(), groups[group].ops.begin(), groups[group].ops.end());
  std::sort(ops.begin(), ops.end());
  std::set<ValueIndex> made, read;
  for (const int position : ops) {
    const Op& op = graph.op(position);
    if (is_marker(op) || is_given(graph, region, op)) continue;
    border.ops.push_back(position);
    made.insert(op.outputs.begin(), op.outputs.end());
  }
  for (const int position : border.ops) {
    const Op& op = graph.op(position);
    for (const ValueIndex value : op.inputs) {
      if (value == kNoValue || made.contains(value) || !read.insert(value).second) continue;
      const int maker = graph.value(value).producer.op;
      const bool is_position = maker >= 0 && std::binary_search(ops.begin(), ops.end(), maker);
      border.inputs.push_back(value);
      border.axes_of_positions.push_back(is_position ? axis_of_positions(graph, graph.op(maker)) : -1);
    }
    for (const ValueIndex value : op.outputs) {
      if (value != kNoValue && needed[static_cast<size_t>(value)]) border.outputs.push_back(value);
    }
  }
  return border;
}

Tile cut_graph(const Graph& graph, const TileRegion& region, const RegionBorder& border, int64_t rows) {
  std::vector<Op> ops;
  for (const int position : border.ops) ops.push_back(graph.op(position));
  Tile tile{GraphEditor::assemble(graph, std::move(ops)), {}, {}};
  for (size_t v = 0; v < tile.graph.values().size(); ++v) {
    const auto index = static_cast<ValueIndex>(v);
    LogicalTensor tensor = tile.graph.tensor(index);
    if (tile.graph.value(index).producer.op < 0) continue;
    tensor.shape.reset();
    tensor.strides.clear();
    tensor.layout = LayoutType::strided;
    tile.graph.set_tensor(index, std::move(tensor));
  }
  const auto bind = [&](ValueIndex value, int axis_of_positions) {
    LogicalTensor part = slice(made_dense(graph.tensor(value)), region.cut.at(value), region.loops, rows);
    if (axis_of_positions >= 0) {
      part.strides.assign(part.shape->size(), 0);
      part.strides[static_cast<size_t>(axis_of_positions)] = 1;
    }
    const ValueIndex bound = *tile.graph.find_value(part.id);
    tile.graph.set_tensor(bound, std::move(part));
    return bound;
  };
  for (size_t i = 0; i < border.inputs.size(); ++i) tile.inputs.push_back(bind(border.inputs[i], border.axes_of_positions[i]));
  for (const ValueIndex value : border.outputs) tile.outputs.push_back(bind(value, -1));
  tile.graph.infer_shapes();
  for (size_t v = 0; v < tile.graph.values().size(); ++v) {
    const auto index = static_cast<ValueIndex>(v);
    tile.graph.set_tensor(index, made_dense(tile.graph.tensor(index)));
    LAMINA_CHECK(tile.graph.tensor(index).has_full_shape(), describe(tile.graph.tensor(index)));
  }
  return tile;
}

Dims strides_of_loops(const LogicalTensor& tensor, const AxisLoops& cut, size_t loops) {
  Dims strides(loops, 0);
  for (size_t axis = 0; axis < cut.size(); ++axis) {
    if (cut[axis] >= 0) strides[static_cast<size_t>(cut[axis])] = bytes_of(tensor.dtype, tensor.strides[axis]);
  }
  return strides;
}

}  // namespace lamina::kernel
