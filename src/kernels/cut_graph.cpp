#include "kernels/cut_graph.h"

#include <algorithm>
#include <set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/graph_editor.h"
#include "passes/tiling/row_view.h"

namespace lamina::kernel {

namespace {

// In a tile, positions along a cut axis would start at 0 again. They are an input of the tile instead.
bool is_given(const Graph& graph, const TileRegion& region, const Op& op) {
  const int axis = axis_of_positions(graph, op);
  return axis >= 0 && region.cut.at(op.outputs[0])[static_cast<size_t>(axis)] >= 0;
}

// One entry of the loops before the loop over rows.
LogicalTensor slice(const LogicalTensor& tensor, const AxisLoops& cut, size_t row_loop, int64_t rows, int64_t columns) {
  LogicalTensor part = tensor;
  for (size_t axis = 0; axis < cut.size(); ++axis) {
    if (cut[axis] < 0) continue;
    const auto loop = static_cast<size_t>(cut[axis]);
    (*part.shape)[axis] = loop == row_loop ? rows : loop > row_loop ? columns : 1;
  }
  return part;
}

// For an op that draws random numbers by position: the distance in positions from one entry of each loop to the next.
Dims positions_of_loops(const Graph& graph, const TileRegion& region, const Op& op) {
  const Dims steps = dense_strides(*graph.tensor(op.inputs[0]).shape);
  const AxisLoops& cut = region.cut.at(op.inputs[0]);
  Dims positions(region.loops.size(), 0);
  for (size_t axis = 0; axis < cut.size(); ++axis) {
    if (cut[axis] >= 0) positions[static_cast<size_t>(cut[axis])] = steps[axis];
  }
  return positions;
}

// Adds the input `first`, so that the elements of the part are drawn as in the whole tensor.
void make_a_part(Op& op, const Graph& graph, ValueIndex first) {
  op.attributes["steps"] = dense_strides(*graph.tensor(op.inputs[0]).shape);
  const std::vector<const PortSpec*> ports = existing_inputs(schema_of(op.kind), op.attributes);
  const auto port = std::find_if(ports.begin(), ports.end(), [](const PortSpec* each) { return each->name == "first"; });
  LAMINA_CHECK(port != ports.end(), join(describe(op), " cannot be a part"));
  op.inputs.resize(static_cast<size_t>(port - ports.begin()) + 1, kNoValue);
  op.inputs.back() = first;
}

// Descriptions of `count` scalar s64 tensors that are not in `graph`.
std::vector<LogicalTensor> new_scalars(const Graph& graph, size_t count) {
  LogicalTensor tensor;
  tensor.id = 0;
  tensor.dtype = DataType::s64;
  tensor.shape = Dims{};
  tensor.layout = LayoutType::strided;
  for (const Value& value : graph.values()) tensor.id = std::max(tensor.id, value.tensor.id + 1);
  std::vector<LogicalTensor> scalars(count, tensor);
  for (size_t i = 0; i < count; ++i) scalars[i].id += i;
  return scalars;
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
    if (!schema_of(op.kind).traits.positional) continue;
    const Dims positions = positions_of_loops(graph, region, op);
    const auto same = std::find(border.tile_origins.begin(), border.tile_origins.end(), positions);
    border.parts[position] = static_cast<size_t>(same - border.tile_origins.begin());
    if (same == border.tile_origins.end()) border.tile_origins.push_back(positions);
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

LogicalTensor tensor_of_sum(const Graph& graph, const TileRegion& region, ValueIndex value) {
  const size_t rows = region.row_loop();
  LogicalTensor entry = slice(graph.tensor(value), region.cut.at(value), rows, region.loops[rows], region.loops.back());
  entry.dtype = DataType::f32;
  entry.layout = LayoutType::strided;
  entry.strides = dense_strides(*entry.shape);
  return entry;
}

Tile cut_graph(const Graph& graph, const TileRegion& region, const RegionBorder& border, int64_t rows, int64_t columns,
               int64_t length) {
  std::vector<Op> ops;
  const std::vector<LogicalTensor> origins = new_scalars(graph, border.tile_origins.size());
  for (const int position : border.ops) {
    ops.push_back(graph.op(position));
    const auto part = border.parts.find(position);
    if (part != border.parts.end())
      make_a_part(ops.back(), graph, static_cast<ValueIndex>(graph.values().size() + part->second));
  }
  Tile tile{GraphEditor::assemble(graph, std::move(ops), origins), {}, {}};
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
    const bool is_sum = region.sums.contains(value);
    const LogicalTensor whole = is_sum ? tensor_of_sum(graph, region, value) : made_dense(graph.tensor(value));
    LogicalTensor part = slice(whole, region.cut.at(value), region.row_loop(), rows, columns);
    if (length > 0 && region.mask->axes.contains(value))
      (*part.shape)[static_cast<size_t>(region.mask->axes.at(value))] = length;
    if (axis_of_positions >= 0) {
      part.strides.assign(part.shape->size(), 0);
      part.strides[static_cast<size_t>(axis_of_positions)] = 1;
    }
    const ValueIndex bound = *tile.graph.find_value(part.id);
    tile.graph.set_tensor(bound, std::move(part));
    return bound;
  };
  for (size_t i = 0; i < border.inputs.size(); ++i) tile.inputs.push_back(bind(border.inputs[i], border.axes_of_positions[i]));
  for (const LogicalTensor& origin : origins) tile.inputs.push_back(*tile.graph.find_value(origin.id));
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
