#include "kernels/lower.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

#include "interface/op_schema.h"
#include "interface/shape_rules.h"
#include "interface/status.h"
#include "kernels/dims.h"
#include "kernels/op_lowering.h"
#include "kernels/remaining_sums.h"
#include "passes/fusion/iteration_view.h"

namespace lamina::kernel {

namespace {

using LoweringTable = std::map<OpKind, Lowering>;

const LoweringTable& lowering_table() {
  static const LoweringTable table = [] {
    LoweringTable all;
    for (const auto& family : {elementwise_lowerings(), elementwise_backward_lowerings(), binary_lowerings(), norm_lowerings(),
                               norm_backward_lowerings(), batch_norm_lowerings(), softmax_lowerings(), reduce_lowerings(),
                               quantize_lowerings(), layout_lowerings(), dropout_lowerings(), window_lowerings()}) {
      for (const Lowering& entry : family) all[entry.kind] = entry;
    }
    return all;
  }();
  return table;
}

// "LayerNorm" -> "layer_norm", "GELUBackward" -> "gelu_backward", "ReLU" -> "relu".
std::string snake_case(std::string_view name) {
  const auto is_upper = [&](size_t i) { return i < name.size() && name[i] >= 'A' && name[i] <= 'Z'; };
  std::string text;
  for (size_t i = 0; i < name.size(); ++i) {
    const bool starts_word = is_upper(i) && i > 0 && (!is_upper(i - 1) || (i + 1 < name.size() && !is_upper(i + 1)));
    if (starts_word) text += '_';
    text += is_upper(i) ? static_cast<char>(name[i] - 'A' + 'a') : name[i];
  }
  for (const auto& [spelt, meant] :
       {std::pair<std::string, std::string>{"p_re_lu", "prelu"}, {"re_lu", "relu"}, {"soft_max", "softmax"}}) {
    if (const size_t at = text.find(spelt); at != std::string::npos) text.replace(at, spelt.size(), meant);
  }
  return text;
}

// The ops in order, and the type of the first operand: add_layer_norm_gelu_f32. Long chains end with the number of ops.
std::string readable_name(const Graph& graph, const FusionGroup& group) {
  std::string name;
  size_t shown = 0, computing = 0;
  DataType dtype = DataType::f32;
  for (const int position : group.ops) {
    const Op& op = graph.ops()[static_cast<size_t>(position)];
    if (op.kind == OpKind::End) continue;
    if (computing++ == 0 && !op.inputs.empty()) dtype = graph.tensor(op.inputs[0]).dtype;
    if (shown < 6) {
      name += snake_case(lamina::name_of(op.kind)) + "_";
      ++shown;
    }
  }
  if (computing > shown) name += join("and_", computing - shown, "_more_");
  return name + std::string(lamina::name_of(dtype));
}

// Strides of a dense tensor over the outer dims of a group, per group dim.
Dims strides_of_row_values(const FusionGroup& group) {
  Dims strides(group.extents.size(), 0);
  int64_t stride = 1;
  for (size_t d = group.extents.size(); d-- > 0;) {
    if (group.inner[d]) continue;
    strides[d] = stride;
    stride *= std::max<int64_t>(group.extents[d], 1);
  }
  return strides;
}

// The elements that an op reads of a tensor.
struct Source {
  int64_t offset = 0;  // of the first, in elements
  Dims strides;        // from one to the next, per dim of the tensor
};

Source source_of(const Graph& graph, const Op& op, int port) {
  const LogicalTensor& tensor = graph.tensor(op.inputs[static_cast<size_t>(port)]);
  Source source{0, strides_in_memory(tensor)};
  if (schema_of(op.kind).nest != LoopNest::sliced) return source;
  const std::vector<AxisSlice> slices = slices_of(OpView(graph, op), *tensor.shape);
  for (size_t axis = 0; axis < slices.size(); ++axis) {
    source.offset += slices[axis].start * source.strides[axis];
    source.strides[axis] *= slices[axis].step;
  }
  return source;
}

// Slots of temporaries that kernels ahead of the group's own write, of sums of segments (one per value), and of sorted indices:
// one per op.
constexpr int kFirstSlotAhead = 64, kFirstSlotSegments = 1 << 29, kFirstSlotSorted = 1 << 30;

class GroupLowering {
 public:
  // With `sums`, lowers what remains of these sums of one op for a separate kernel. Without, `left` lists what the group's own
  // kernel leaves to such walks. `is_ahead`: lowers what an op computes over its windows before its own kernel.
  GroupLowering(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed, const std::vector<Sums>& left,
                const Sums* sums = nullptr, bool is_ahead = false)
      : graph_(graph),
        group_(sums == nullptr ? group : sums->group),
        needed_(needed),
        left_(left),
        sums_(sums),
        is_ahead_(is_ahead),
        row_value_strides_(strides_of_row_values(group)),
        entries_(sums == nullptr ? entry_dims(graph, group) : std::vector<bool>(group.extents.size(), false)),
        order_(outer_then_inner()),
        builder_(make_builder()) {}

  LoweredKernel run() {
    if (sums_ != nullptr && sums_->in_segments) add_segments_of_rows();
    for (const int position : group_.ops)
      if (sums_ == nullptr || !sums_->in_segments) lower_op(position);
    for (const auto& [value, stored] : made_) {
      if (needed_[static_cast<size_t>(value)]) store(value, stored);
    }
    LoweredKernel lowered{builder_.finish(), std::move(args_), std::move(offsets_), std::move(checks_)};
    lowered.args.resize(lowered.kernel.args.size(), kNoValue);
    if (!lowered.offsets.empty()) lowered.offsets.resize(lowered.kernel.args.size(), 0);
    store_sums_of_one_row(lowered.kernel);
    simplify_dims(lowered.kernel);
    verify(lowered.kernel);
    return lowered;
  }

 private:
  struct Made {
    Value value;
    DimMap map;
  };

  // The dims of entries are the first of the outer ones, and those that number segments are the first of the inner ones.
  std::vector<size_t> outer_then_inner() const {
    std::vector<bool> first = entries_;
    for (const Sums& sums : left_)
      for (size_t d = 0; sums_ == nullptr && sums.in_segments && d < first.size(); ++d)
        first[d] = first[d] || sums.numbers_segments[d];
    std::vector<size_t> order;
    for (const bool inner : {false, true}) {
      for (const bool is_first : {true, false}) {
        for (size_t d = 0; d < group_.extents.size(); ++d) {
          if (group_.inner[d] == inner && first[d] == is_first) order.push_back(d);
        }
      }
    }
    return order;
  }

  Builder make_builder() const {
    Dims extents;
    for (const size_t d : order_) extents.push_back(group_.extents[d]);
    const auto inner_count = std::count(group_.inner.begin(), group_.inner.end(), true);
    int outer_rank = static_cast<int>(extents.size() - static_cast<size_t>(inner_count));
    if (inner_count == 0) {  // a loop nest without reductions: any dim may be the inner one
      extents.push_back(1);
    }
    return Builder(readable_name(graph_, group_) + (sums_ == nullptr ? "" : "_sums"), std::move(extents), outer_rank,
                   static_cast<int>(std::count(entries_.begin(), entries_.end(), true)));
  }

  // Strides per iteration dim of a tensor that has `strides` along the dims of `map`.
  Dims iteration_strides(const DimMap& map, const Dims& strides) const {
    Dims by_group_dim(group_.extents.size(), 0);
    for (size_t j = 0; j < map.size(); ++j) {
      int64_t stride = strides[j];
      for (int d = map[j].first + map[j].count - 1; d >= map[j].first; --d) {
        by_group_dim[static_cast<size_t>(d)] = stride;
        // An overflowing stride is never used: the tensor has no elements, or no further dim belongs to the axis.
        static_cast<void>(__builtin_mul_overflow(stride, group_.extents[static_cast<size_t>(d)], &stride));
      }
    }
    return in_nest_order(by_group_dim);
  }

  Dims in_nest_order(const Dims& by_group_dim) const {
    Dims ordered;
    for (const size_t d : order_) ordered.push_back(by_group_dim[d]);
    ordered.resize(builder_extents_, 0);
    return ordered;
  }

  int add_value_arg(ValueIndex value, Dims strides, bool output) {
    const LogicalTensor& tensor = graph_.tensor(value);
    const int arg = builder_.add_arg(
        {.name = join("t", tensor.id), .dtype = tensor.dtype, .output = output, .strides = std::move(strides), .table = {}});
    remember_arg(arg, value);
    return arg;
  }
  int add_output_arg(ValueIndex value, const DimMap& map) {
    return add_value_arg(value, iteration_strides(map, strides_in_memory(graph_.tensor(value))), true);
  }

  // An arg for a value per row of the group, in a temporary.
  int add_carried_arg(int slot, DataType dtype, bool output) {
    const int arg = builder_.add_arg({.name = join("carried", slot),
                                      .dtype = dtype,
                                      .output = output,
                                      .strides = in_nest_order(row_value_strides_),
                                      .table = {}});
    remember_arg(arg, kTemporary - slot);
    return arg;
  }

  int add_read_arg(Arg arg, ValueIndex value, const InputRead& how) {
    arg.strides = how.strides;
    arg.entries = how.entries;
    arg.entry_stride = how.entry_stride;
    const int index = builder_.add_arg(std::move(arg));
    remember_arg(index, value);
    remember_offset(index, how.offset);
    return index;
  }
  void remember_offset(int arg, int64_t offset) {
    if (offset == 0) return;
    offsets_.resize(static_cast<size_t>(arg) + 1, 0);
    offsets_.back() = offset;
  }
  int slot_ahead(int position) const { return kFirstSlotAhead + position; }

  void remember_arg(int arg, ValueIndex value) {
    args_.resize(static_cast<size_t>(arg) + 1, kNoValue);
    args_[static_cast<size_t>(arg)] = value;
  }

  const Sums* sums_of(int position, int port) const {
    const auto found = std::find_if(left_.begin(), left_.end(), [&](const Sums& sums) {
      return sums.op == position && std::find(sums.ports.begin(), sums.ports.end(), port) != sums.ports.end();
    });
    return found == left_.end() ? nullptr : &*found;
  }
  bool is_left_to_sums(int position, int port) const {
    const Sums* const sums = sums_of(position, port);
    return sums != nullptr && !sums->in_segments;
  }
  bool has_sums(int position) const {
    return std::any_of(left_.begin(), left_.end(), [&](const Sums& sums) { return sums.op == position && !sums.in_segments; });
  }

  void sum_segments(const Sums& sums, ValueIndex result, Value value, const DimMap& map) {
    const int arg = sums.adds_rows() ? add_segments_arg(sums, result, value.type(), true) : add_output_arg(result, map);
    if (sums.has_several_segments())
      builder_.segment_sum(value, arg);
    else
      builder_.store(builder_.reduce(Reduction::sum, value), arg);
  }
  void add_segments_of_rows() {
    const Op& op = graph_.op(sums_->op);
    for (const int port : sums_->ports) {
      const ValueIndex result = op.outputs[static_cast<size_t>(port)];
      if (!is_wanted(result)) continue;
      const Value segments = builder_.load(add_segments_arg(*sums_, result, float_type(op), false));
      made_[result] = {builder_.reduce(Reduction::sum, segments), group_.output_maps.at({sums_->op, port})};
    }
  }
  int add_segments_arg(const Sums& sums, ValueIndex result, Type type, bool output) {
    const int arg = builder_.add_arg({.name = join("segments", result),
                                      .dtype = data_type_of(type),
                                      .output = output,
                                      .strides = in_nest_order(sums.strides),
                                      .table = {}});
    remember_arg(arg, kTemporary - (kFirstSlotSegments + result));
    return arg;
  }

  void lower_op(int position) {
    const Op& op = graph_.ops()[static_cast<size_t>(position)];
    const auto found = lowering_table().find(op.kind);
    LAMINA_CHECK(found != lowering_table().end(), join("no lowering for ", describe(op)));
    OpLowering lowering(graph_, op, builder_, wiring(position, op));
    (is_ahead_ ? found->second.ahead : found->second.lower)(lowering);
  }

  OpLowering::Wiring wiring(int position, const Op& op) {
    OpLowering::Wiring wiring;
    wiring.read = [this, position, &op](int port) { return read(op, port, group_.input_maps.at({position, port})); };
    wiring.input_arg = [this, &op](int port, const InputRead& how) {
      return add_read_arg({.name = join("t", graph_.tensor(op.inputs[static_cast<size_t>(port)]).id),
                           .dtype = graph_.tensor(op.inputs[static_cast<size_t>(port)]).dtype,
                           .strides = {},
                           .table = {}},
                          op.inputs[static_cast<size_t>(port)], how);
    };
    wiring.ahead_arg = [this, position](int slot, const InputRead& how) {
      const int of_op = slot_ahead(position) + slot;
      return add_read_arg({.name = join("ahead", of_op), .strides = {}, .table = {}}, kTemporary - of_op, how);
    };
    const ValueIndex sorted = kTemporary - (kFirstSlotSorted + position);
    wiring.check_indices = [this, &op, sorted](int port, int64_t extent, const std::optional<IndexOrder>& order) {
      checks_.push_back({op, op.inputs[static_cast<size_t>(port)], extent, order, order ? sorted : kNoValue});
    };
    wiring.sorted_arg = [this, position, sorted](const InputRead& how) {
      return add_read_arg({.name = join("sorted", position), .dtype = DataType::s64, .strides = {}, .table = {}}, sorted, how);
    };
    wiring.write = [this, position, &op](int port, Value value) {
      made_[op.outputs[static_cast<size_t>(port)]] = {value, group_.output_maps.at({position, port})};
    };
    wiring.write_column = [this, position, &op](int port, Value value) {
      const ValueIndex result = op.outputs[static_cast<size_t>(port)];
      const DimMap& map = group_.output_maps.at({position, port});
      const auto columns = group_.column_outputs.find(position);
      const bool sums_nothing = columns == group_.column_outputs.end() || !columns->second[static_cast<size_t>(port)];
      if (sums_nothing)
        made_[result] = {value, map};
      else if (sums_ != nullptr && sums_->by_rows)
        made_[result] = {builder_.reduce(Reduction::sum, value), map};
      else if (const Sums* const sums = sums_of(position, port); sums_ == nullptr && sums != nullptr)
        sum_segments(*sums, result, value, map);
      else
        builder_.column_sum(value, add_output_arg(result, map));
    };
    wiring.is_needed = [this, position, &op](int port) {
      const bool here = is_left_to_sums(position, port) == (sums_ != nullptr);
      return here && is_wanted(op.outputs[static_cast<size_t>(port)]);
    };
    wiring.is_column = [this, position](int port) {
      const auto columns = group_.column_outputs.find(position);
      return columns != group_.column_outputs.end() && columns->second[static_cast<size_t>(port)];
    };
    wiring.sums_only = sums_ != nullptr;
    const DataType carried_type = float_type(op) == Type::f64 ? DataType::f64 : DataType::f32;
    wiring.carry = [this, position, carried_type](int slot, Value value) {
      if (is_ahead_)
        builder_.store(value, add_carried_arg(slot_ahead(position) + slot, DataType::f32, true));
      else if (has_sums(position))
        builder_.store(value, add_carried_arg(slot, carried_type, true));
    };
    wiring.carried = [this, carried_type](int slot) { return builder_.load(add_carried_arg(slot, carried_type, false)); };
    wiring.input_map = [this, position](int port) { return group_.input_maps.at({position, port}); };
    wiring.output_map = [this, position](int port) { return group_.output_maps.at({position, port}); };
    wiring.iteration_strides = [this](const DimMap& map, const Dims& strides) { return iteration_strides(map, strides); };
    wiring.float_type = float_type(op);
    return wiring;
  }

  // f64 if the op's result (or its first operand, if it has no result) is f64.
  Type float_type(const Op& op) const {
    for (const auto* ports : {&op.outputs, &op.inputs}) {
      for (const ValueIndex value : *ports) {
        if (value == kNoValue) continue;
        const DataType dtype = graph_.tensor(value).dtype;
        if (is_floating(dtype)) return dtype == DataType::f64 ? Type::f64 : Type::f32;
      }
    }
    return Type::f32;
  }

  // It is stored for a reader outside the group, or an op reads it.
  bool is_wanted(ValueIndex value) const {
    return value != kNoValue && (needed_[static_cast<size_t>(value)] || !graph_.value(value).consumers.empty());
  }

  Value read(const Op& op, int port, const DimMap& map) {
    const ValueIndex value = op.inputs[static_cast<size_t>(port)];
    if (const auto made = made_.find(value); made != made_.end()) return made->second.value;
    const Source source = source_of(graph_, op, port);
    const auto key = std::make_tuple(value, source.offset, iteration_strides(map, source.strides));
    if (const auto loaded = loaded_.find(key); loaded != loaded_.end()) return loaded->second;
    const int arg = add_value_arg(value, std::get<Dims>(key), false);
    remember_offset(arg, source.offset);
    const Value result = builder_.load(arg);
    loaded_.emplace(key, result);
    return result;
  }

  void store(ValueIndex value, const Made& made) { builder_.store(made.value, add_output_arg(value, made.map)); }

  const Graph& graph_;
  const FusionGroup& group_;
  const std::vector<bool>& needed_;
  const std::vector<Sums>& left_;
  const Sums* sums_;
  bool is_ahead_;
  Dims row_value_strides_;
  std::vector<bool> entries_;  // per group dim
  std::vector<size_t> order_;
  size_t builder_extents_ =
      std::max<size_t>(order_.size() + (std::count(group_.inner.begin(), group_.inner.end(), true) == 0), 1);
  Builder builder_;
  std::vector<ValueIndex> args_;
  Dims offsets_;  // per arg; as long as the last offset that is not 0
  std::vector<IndexCheck> checks_;
  std::map<ValueIndex, Made> made_;
  std::map<std::tuple<ValueIndex, int64_t, Dims>, Value> loaded_;
};

// The groups, one op each, whose kernels run ahead of that of `group`.
std::vector<FusionGroup> groups_ahead(const Graph& graph, const FusionGroup& group) {
  std::vector<FusionGroup> groups;
  for (const int position : group.ops) {
    const Op& op = graph.op(position);
    if (lowering_table().at(op.kind).ahead == nullptr) continue;
    const OpView view(graph, op);
    const IterationView windows = view_of_windows(graph, op, view.shape("diff_dst"), forward_windows_of(view));
    FusionGroup before;
    before.ops = {position}, before.extents = windows.extents, before.inner = windows.inner;
    for (size_t port = 0; port < op.inputs.size(); ++port)
      if (op.inputs[port] != kNoValue) before.input_maps[{position, static_cast<int>(port)}] = windows.inputs[port];
    before.output_maps[{position, 0}] = windows.outputs[0];
    groups.push_back(std::move(before));
  }
  return groups;
}

}  // namespace

std::vector<LoweredKernel> lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed,
                                 bool sums_segments) {
  if (group.opaque_copy) return lower_copies(graph, graph.ops()[static_cast<size_t>(group.ops.front())]);
  const std::vector<Sums> left = remaining_sums(graph, group, sums_segments);
  std::vector<LoweredKernel> kernels, all;
  std::vector<bool> in_memory = needed;  // also what the second walks read
  for (const Sums& sums : left) {
    if (sums.in_segments && !sums.adds_rows()) continue;
    kernels.push_back(GroupLowering(graph, group, needed, left, &sums).run());
    for (const ValueIndex value : kernels.back().args)
      if (value >= 0) in_memory[static_cast<size_t>(value)] = true;
  }
  LoweredKernel main = GroupLowering(graph, group, in_memory, left).run();
  for (const FusionGroup& before : groups_ahead(graph, group))
    all.push_back(GroupLowering(graph, before, needed, {}, nullptr, true).run());
  if (!main.kernel.nodes.empty()) all.push_back(std::move(main));  // it is empty if only sums are needed
  all.insert(all.end(), std::make_move_iterator(kernels.begin()), std::make_move_iterator(kernels.end()));
  return all;
}

bool has_lowering(OpKind kind) {
  const LoopNest nest = schema_of(kind).nest;
  const bool only_copies = nest == LoopNest::concatenated || nest == LoopNest::reinterpreted;
  return lowering_table().contains(kind) || only_copies;
}

}  // namespace lamina::kernel
