#include "kernels/lower.h"

#include <algorithm>
#include <map>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "kernels/dims.h"
#include "kernels/op_lowering.h"

namespace lamina::kernel {

namespace {

using LoweringTable = std::map<OpKind, void (*)(OpLowering&)>;

const LoweringTable& lowering_table() {
  static const LoweringTable table = [] {
    LoweringTable all;
    for (const auto& family : {elementwise_lowerings(), elementwise_backward_lowerings(), binary_lowerings(), norm_lowerings(),
                               norm_backward_lowerings(), softmax_lowerings(), reduce_lowerings(), quantize_lowerings(),
                               layout_lowerings(), dropout_lowerings()}) {
      for (const Lowering& entry : family) all[entry.kind] = entry.lower;
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
  for (const auto& [spelt, meant] : {std::pair<std::string, std::string>{"p_re_lu", "prelu"}, {"re_lu", "relu"}, {"soft_max", "softmax"}}) {
    if (const size_t at = text.find(spelt); at != std::string::npos) text.replace(at, spelt.size(), meant);
  }
  return text;
}

// Ops in order and the type of the widest tensor's elements: add_layer_norm_gelu_f32; long chains end in the op count.
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

class GroupLowering {
 public:
  GroupLowering(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed)
      : graph_(graph), group_(group), needed_(needed), order_(outer_then_inner(group)), builder_(make_builder()) {}

  LoweredKernel run() {
    for (const int position : group_.ops) lower_op(position);
    for (const auto& [value, stored] : made_) {
      if (needed_[static_cast<size_t>(value)]) store(value, stored);
    }
    LoweredKernel lowered{builder_.finish(), std::move(args_)};
    lowered.args.resize(lowered.kernel.args.size(), kNoValue);
    simplify_dims(lowered.kernel);
    verify(lowered.kernel);
    return lowered;
  }

 private:
  struct Made {
    Value value;
    DimMap map;
  };

  static std::vector<size_t> outer_then_inner(const FusionGroup& group) {
    std::vector<size_t> order;
    for (const bool inner : {false, true}) {
      for (size_t d = 0; d < group.extents.size(); ++d) {
        if (group.inner[d] == inner) order.push_back(d);
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
    return Builder(readable_name(graph_, group_), std::move(extents), outer_rank);
  }

  // Strides per iteration dim of something that has `strides` along the dims of `map`.
  Dims iteration_strides(const DimMap& map, const Dims& strides) const {
    Dims by_group_dim(group_.extents.size(), 0);
    for (size_t j = 0; j < map.size(); ++j) {
      int64_t stride = strides[j];
      for (int d = map[j].first + map[j].count - 1; d >= map[j].first; --d) {
        by_group_dim[static_cast<size_t>(d)] = stride;
        stride *= group_.extents[static_cast<size_t>(d)];
      }
    }
    Dims ordered;
    for (const size_t d : order_) ordered.push_back(by_group_dim[d]);
    ordered.resize(builder_extents_, 0);
    return ordered;
  }

  int add_value_arg(ValueIndex value, const DimMap& map, bool output) {
    const LogicalTensor& tensor = graph_.tensor(value);
    const int arg = builder_.add_arg({.name = join("t", tensor.id), .dtype = tensor.dtype, .output = output,
                                      .strides = iteration_strides(map, tensor.strides), .table = {}});
    args_.resize(static_cast<size_t>(arg) + 1, kNoValue);
    args_[static_cast<size_t>(arg)] = value;
    return arg;
  }

  void lower_op(int position) {
    const Op& op = graph_.ops()[static_cast<size_t>(position)];
    const auto found = lowering_table().find(op.kind);
    LAMINA_CHECK(found != lowering_table().end(), join("no lowering for ", describe(op)));
    OpLowering lowering(graph_, op, builder_, wiring(position, op));
    found->second(lowering);
  }

  OpLowering::Wiring wiring(int position, const Op& op) {
    OpLowering::Wiring wiring;
    wiring.read = [this, position, &op](int port) { return read(op.inputs[static_cast<size_t>(port)], group_.input_maps.at({position, port})); };
    wiring.write = [this, position, &op](int port, Value value) {
      made_[op.outputs[static_cast<size_t>(port)]] = {value, group_.output_maps.at({position, port})};
    };
    wiring.write_column = [this, position, &op](int port, Value value) {
      builder_.column_sum(value, add_value_arg(op.outputs[static_cast<size_t>(port)], group_.output_maps.at({position, port}), true));
    };
    wiring.is_needed = [this, &op](int port) { return is_wanted(op.outputs[static_cast<size_t>(port)]); };
    wiring.input_map = [this, position](int port) { return group_.input_maps.at({position, port}); };
    wiring.iteration_strides = [this](const DimMap& map, const Dims& strides) { return iteration_strides(map, strides); };
    wiring.float_type = float_type(op);
    return wiring;
  }

  // f64 where the op's result (or, for one that has none, its first operand) is f64.
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

  // Somebody outside stores it, or an op reads it.
  bool is_wanted(ValueIndex value) const {
    return value != kNoValue && (needed_[static_cast<size_t>(value)] || !graph_.value(value).consumers.empty());
  }

  Value read(ValueIndex value, const DimMap& map) {
    if (const auto made = made_.find(value); made != made_.end()) return made->second.value;
    const auto key = std::make_pair(value, iteration_strides(map, graph_.tensor(value).strides));
    if (const auto loaded = loaded_.find(key); loaded != loaded_.end()) return loaded->second;
    const Value result = builder_.load(add_value_arg(value, map, false));
    loaded_.emplace(key, result);
    return result;
  }

  void store(ValueIndex value, const Made& made) { builder_.store(made.value, add_value_arg(value, made.map, true)); }

  const Graph& graph_;
  const FusionGroup& group_;
  const std::vector<bool>& needed_;
  std::vector<size_t> order_;
  size_t builder_extents_ = std::max<size_t>(order_.size() + (std::count(group_.inner.begin(), group_.inner.end(), true) == 0), 1);
  Builder builder_;
  std::vector<ValueIndex> args_;
  std::map<ValueIndex, Made> made_;
  std::map<std::pair<ValueIndex, Dims>, Value> loaded_;
};

}  // namespace

std::vector<LoweredKernel> lower(const Graph& graph, const FusionGroup& group, const std::vector<bool>& needed) {
  if (group.opaque_copy) return lower_row_major_copy(graph, graph.ops()[static_cast<size_t>(group.ops.front())]);
  std::vector<LoweredKernel> kernels;
  kernels.push_back(GroupLowering(graph, group, needed).run());
  return kernels;
}

bool has_lowering(OpKind kind) { return lowering_table().contains(kind); }

}  // namespace lamina::kernel
