#include "kernels/insert_casts.h"

#include <algorithm>
#include <map>
#include <numeric>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/graph_editor.h"

namespace lamina::kernel {

namespace {

bool is_narrow_float(DataType dtype) { return dtype == DataType::bf16 || dtype == DataType::f16; }

// Whether the op reads elements of its input at other places than those that its loop nest visits.
bool is_read_in_part(OpKind kind) {
  const LoopNest nest = schema_of(kind).nest;
  return nest == LoopNest::sliced || nest == LoopNest::gathered || nest == LoopNest::scattered || nest == LoopNest::windows;
}

// A stride of 0 says nothing about a tensor without elements.
bool is_broadcast(const LogicalTensor& tensor, size_t axis) {
  return tensor.has_strides() && tensor.strides[axis] == 0 && tensor.element_count() != 0;
}

// The strides of a copy of the tensor without gaps, with its order of axes. Axes along which it is broadcast remain so.
Dims packed_strides(const LogicalTensor& tensor) {
  const Dims& shape = *tensor.shape;
  if (!tensor.has_strides()) return dense_strides(shape);
  std::vector<size_t> axes(shape.size());
  std::iota(axes.begin(), axes.end(), size_t{0});
  std::stable_sort(axes.begin(), axes.end(), [&](size_t a, size_t b) { return tensor.strides[a] > tensor.strides[b]; });
  Dims strides(shape.size(), 0);
  int64_t stride = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    if (is_broadcast(tensor, axes[i])) continue;
    strides[axes[i]] = stride;
    stride *= std::max<int64_t>(shape[axes[i]], 1);
  }
  return strides;
}

bool computes_in_f32(const Graph& graph, int position, const LibrarySteps& steps, const LibraryCapabilities& library) {
  const Op& op = graph.op(position);
  if (schema_of(op.kind).op_class != OpClass::library) return false;
  for (const auto& ports : {steps.inputs(graph, position), steps.outputs(graph, position)}) {
    for (const ValueIndex value : ports) {
      const DataType dtype = value == kNoValue ? DataType::undef : graph.tensor(value).dtype;
      if (is_narrow_float(dtype) && !library.takes_type(op, dtype)) return true;
    }
  }
  return false;
}

class Inserter {
 public:
  Inserter(const Graph& graph, const std::vector<FusionGroup>& groups, const std::vector<TileRegion>& regions,
           LibrarySteps& steps, const LibraryCapabilities& library)
      : graph_(graph),
        steps_(steps),
        library_(library),
        groups_(groups),
        regions_(regions),
        ops_(graph.ops()),
        places_(graph.ops().size()),
        before_(regions.size()),
        after_(regions.size()) {
    for (size_t r = 0; r < regions.size(); ++r) {
      for (const size_t group : regions[r].groups)
        for (const int op : groups[group].ops) places_[static_cast<size_t>(op)] = {group, r};
    }
    for (const Value& value : graph.values()) next_tensor_ = std::max(next_tensor_, value.tensor.id + 1);
    for (const Op& op : graph.ops()) next_op_ = std::max(next_op_, op.id + 1);
  }

  CastGraph run() {
    for (size_t r = 0; r < regions_.size(); ++r) {
      if (regions_[r].rows > 0)
        widen_inputs_of_tiles(r);
      else
        widen_step(r);
    }
    connect();
    for (const auto& [value, raw] : raw_) cast_result(value, raw);
    for (const auto& [value, wide] : wide_) cast_operand(value, wide);
    for (auto& [group, casts] : added_to_front_)
      groups_[group].ops.insert(groups_[group].ops.begin(), casts.begin(), casts.end());
    return CastGraph{GraphEditor::extend(graph_, std::move(ops_), tensors_), std::move(groups_), regions_in_order()};
  }

 private:
  struct Place {
    size_t group = 0, region = 0;
  };
  const Place& place(int op) const { return places_[static_cast<size_t>(op)]; }
  DataType dtype_of(ValueIndex value) const { return graph_.tensor(value).dtype; }
  bool is_cast(ValueIndex value) const { return value != kNoValue && is_narrow_float(dtype_of(value)); }

  void widen_step(size_t region) {
    const FusionGroup& group = groups_[regions_[region].groups.front()];
    const int op = group.ops.front();
    if (!computes_in_f32(graph_, op, steps_, library_)) return;
    const std::vector<ValueIndex> read = steps_.inputs(graph_, op);
    for (size_t port = 0; port < read.size(); ++port)
      if (is_cast(read[port])) ops_[static_cast<size_t>(op)].inputs[port] = wide(read[port]);
    const auto post_ops = steps_.post_ops.find(op);
    const std::vector<ValueIndex> made = steps_.outputs(graph_, op);
    for (size_t port = 0; port < made.size(); ++port) {
      if (!is_cast(made[port])) continue;
      const ValueIndex raw = new_value(made[port], DataType::f32);
      raw_.insert({made[port], {raw, op}});
      (post_ops == steps_.post_ops.end() ? ops_[static_cast<size_t>(op)].outputs[port] : post_ops->second.result) = raw;
    }
  }

  // What no tile cuts by rows would be cast again in each tile.
  void widen_inputs_of_tiles(size_t index) {
    TileRegion& region = regions_[index];
    for (const size_t group : region.groups) {
      const int op = groups_[group].ops.front();
      if (!computes_in_f32(graph_, op, steps_, library_)) continue;
      for (ValueIndex& value : ops_[static_cast<size_t>(op)].inputs) {
        if (!is_cast(value) || is_made_in(value, index) || has_rows(region, value)) continue;
        const AxisLoops axes = region.cut.at(value);
        const ValueIndex narrow = value;
        value = wide(value);
        region.cut[value] = axes;
        if (region.mask) replace(*region.mask, narrow, value);
      }
    }
  }
  static void replace(CausalMask& mask, ValueIndex narrow, ValueIndex wide) {
    if (mask.values == narrow) mask.values = wide;
    if (mask.axes.contains(narrow)) mask.axes[wide] = mask.axes.at(narrow);
  }
  bool is_made_in(ValueIndex value, size_t region) const {
    const int maker = graph_.value(value).producer.op;
    return maker >= 0 && place(maker).region == region;
  }
  static bool has_rows(const TileRegion& region, ValueIndex value) {
    const AxisLoops& axes = region.cut.at(value);
    const auto row_loop = static_cast<int>(region.row_loop());
    return std::any_of(axes.begin(), axes.end(), [&](int loop) { return loop >= row_loop; });
  }

  ValueIndex new_value(ValueIndex like, DataType dtype) {
    LogicalTensor tensor = graph_.tensor(like);
    tensor.strides = packed_strides(tensor);
    tensor.layout = LayoutType::strided;
    tensor.property = PropertyType::undef;
    tensor.dtype = dtype;
    tensor.id = next_tensor_++;
    tensors_.push_back(std::move(tensor));
    return static_cast<ValueIndex>(graph_.values().size() + tensors_.size() - 1);
  }
  ValueIndex wide(ValueIndex value) {
    const auto found = wide_.find(value);
    return found != wide_.end() ? found->second : wide_[value] = new_value(value, DataType::f32);
  }

  // Who reads a value after the changes.
  void connect() {
    for (size_t op = 0; op < ops_.size(); ++op) {
      for (size_t port = 0; port < ops_[op].inputs.size(); ++port)
        if (ops_[op].inputs[port] != kNoValue)
          readers_[ops_[op].inputs[port]].push_back({static_cast<int>(op), static_cast<int>(port)});
    }
  }

  // ---- placing casts

  int new_cast(ValueIndex from, ValueIndex to) {
    Op cast;
    cast.id = next_op_++;
    cast.kind = OpKind::TypeCast;
    cast.name = join("cast_", cast.id);
    cast.inputs = {from};
    cast.outputs = {to};
    ops_.push_back(std::move(cast));
    return static_cast<int>(ops_.size() - 1);
  }
  void set_maps(size_t group, int cast, const DimMap& map) {
    groups_[group].input_maps[{cast, 0}] = map;
    groups_[group].output_maps[{cast, 0}] = map;
  }
  void append(size_t group, int cast, const DimMap& map) {
    groups_[group].ops.push_back(cast);
    groups_[group].reasons.emplace_back();
    set_maps(group, cast, map);
  }

  struct OwnGroup {
    size_t group;
    DimMap map;
  };
  OwnGroup own_group(const LogicalTensor& tensor) {
    FusionGroup group;
    DimMap map;
    for (size_t axis = 0; axis < tensor.shape->size(); ++axis) {
      const bool is_one = is_broadcast(tensor, axis);
      group.extents.push_back(is_one ? 1 : (*tensor.shape)[axis]);
      map.push_back({static_cast<int>(axis), is_one ? 0 : 1});
    }
    group.inner.assign(group.extents.size(), false);
    groups_.push_back(std::move(group));
    return {groups_.size() - 1, map};
  }

  // The step of post-ops runs at the place of their group.
  size_t region_of_step(int op) const {
    for (const auto& [first, product] : steps_.product_of)
      if (product == op) return place(first).region;
    return place(op).region;
  }

  struct Result {
    ValueIndex raw;
    int op;
  };
  // From the library's result, which is not rounded.
  void cast_result(ValueIndex value, const Result& result) {
    const int cast = new_cast(result.raw, value);
    if (const Port* const reader = sole_kernel_reader(value)) {
      const size_t group = place(reader->op).group;
      added_to_front_[group].push_back(cast);
      groups_[group].reasons.emplace_back();
      set_maps(group, cast, groups_[group].input_maps.at({reader->op, reader->port}));
      return;
    }
    const OwnGroup own = own_group(graph_.tensor(value));
    append(own.group, cast, own.map);
    after_[region_of_step(result.op)].push_back(own.group);
    if (const auto found = wide_.find(value); found != wide_.end()) append(own.group, new_cast(value, found->second), own.map);
  }

  // Where the value is written or, if a kernel does not write it, before its first reader.
  void cast_operand(ValueIndex value, ValueIndex wide) {
    if (raw_.contains(value)) return;  // already cast
    const Port& maker = graph_.value(value).producer;
    if (maker.op >= 0 && is_kernel(maker.op) && !is_column_sum(maker)) {
      const size_t group = place(maker.op).group;
      const DimMap map = groups_[group].output_maps.at({maker.op, maker.port});
      ValueIndex rounded = value;
      if (graph_.op(maker.op).kind != OpKind::TypeCast) {
        rounded = new_value(value, dtype_of(value));
        append(group, new_cast(value, rounded), map);
      }
      append(group, new_cast(rounded, wide), map);
      return;
    }
    size_t first = regions_.size() - 1;
    for (const Port& reader : readers_[wide]) first = std::min(first, region_of_step(reader.op));
    const OwnGroup own = own_group(graph_.tensor(value));
    append(own.group, new_cast(value, wide), own.map);
    before_[first].push_back(own.group);
  }

  // Whether the op is part of a loop nest that runs as one step.
  bool is_kernel(int op) const {
    const FusionGroup& group = groups_[place(op).group];
    return regions_[place(op).region].rows == 0 && group.no_loop_nest.empty() && !group.opaque_copy &&
           !steps_.left_out.contains(op) && !steps_.product_of.contains(group.ops.front());
  }
  bool is_column_sum(const Port& maker) const {
    const auto& sums = groups_[place(maker.op).group].column_outputs;
    const auto found = sums.find(maker.op);
    return found != sums.end() && found->second[static_cast<size_t>(maker.port)];
  }

  // The first reader of a value that one kernel alone reads, element by element; null if there is no such kernel.
  const Port* sole_kernel_reader(ValueIndex value) {
    if (wide_.contains(value)) return nullptr;
    const Port* first = nullptr;
    for (const Port& reader : readers_[value]) {
      const Op& op = ops_[static_cast<size_t>(reader.op)];
      if (is_marker(op)) continue;
      if (!is_kernel(reader.op) || is_read_in_part(op.kind)) return nullptr;
      if (first == nullptr) first = &reader;
      const FusionGroup& group = groups_[place(reader.op).group];
      const DimMap& map = group.input_maps.at({reader.op, reader.port});
      if (place(reader.op).group != place(first->op).group || !has_all_dims(group, map) ||
          map != group.input_maps.at({first->op, first->port}))
        return nullptr;
    }
    return first;
  }
  static bool has_all_dims(const FusionGroup& group, const DimMap& map) {
    std::vector<bool> present(group.extents.size(), false);
    for (const AxisRun& run : map)
      for (int d = run.first; d < run.first + run.count; ++d) present[static_cast<size_t>(d)] = true;
    for (size_t d = 0; d < present.size(); ++d)
      if (!present[d] && group.extents[d] != 1) return false;
    return true;
  }

  std::vector<TileRegion> regions_in_order() {
    std::vector<TileRegion> all;
    const auto add = [&](const std::vector<size_t>& groups) {
      for (const size_t group : groups) all.emplace_back().groups = {group};
    };
    for (size_t r = 0; r < regions_.size(); ++r) {
      add(before_[r]);
      all.push_back(std::move(regions_[r]));
      add(after_[r]);
    }
    return all;
  }

  const Graph& graph_;
  LibrarySteps& steps_;
  const LibraryCapabilities& library_;
  std::vector<FusionGroup> groups_;
  std::vector<TileRegion> regions_;
  std::vector<Op> ops_;
  std::vector<LogicalTensor> tensors_;               // new ones
  std::vector<Place> places_;                        // per op of the graph
  std::vector<std::vector<size_t>> before_, after_;  // per region: new groups
  std::map<size_t, std::vector<int>> added_to_front_;
  std::map<ValueIndex, Result> raw_;       // results of library steps in f32, before they are rounded
  std::map<ValueIndex, ValueIndex> wide_;  // operands of library steps in f32
  std::map<ValueIndex, std::vector<Port>> readers_;
  uint64_t next_tensor_ = 0, next_op_ = 0;
};

}  // namespace

std::optional<CastGraph> insert_casts(const Graph& graph, const std::vector<FusionGroup>& groups,
                                      const std::vector<TileRegion>& regions, LibrarySteps& steps,
                                      const LibraryCapabilities& library) {
  for (size_t op = 0; op < graph.ops().size(); ++op) {
    if (computes_in_f32(graph, static_cast<int>(op), steps, library))
      return Inserter(graph, groups, regions, steps, library).run();
  }
  return std::nullopt;
}

}  // namespace lamina::kernel
