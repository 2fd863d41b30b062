#include "passes/tiling/causal_mask.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "interface/op_schema.h"
#include "passes/tiling/cut_op.h"
#include "passes/tiling/row_view.h"

namespace lamina {

namespace {

constexpr int64_t kMostLengths = 8;  // each one is compiled
constexpr int64_t kLengthStep = 64;  // columns
constexpr int64_t kFewestColumns = 128;

// A position along rows or columns, plus numbers.
struct Position {
  ValueIndex value = kNoValue;  // the result of GenIndex
  int axis = 0;
  int64_t added = 0;
  std::vector<CausalMask::Offset> offsets;
};

class MaskFinder {
 public:
  MaskFinder(const Graph& graph, const TileRegion& region, std::span<const int> ops,
             const std::function<bool(ValueIndex)>& is_needed)
      : graph_(graph), region_(region), ops_(ops), is_needed_(is_needed) {}

  std::optional<CausalMask> find() {
    // The last of several masks, because the softmax reads it.
    const auto is_read_by_softmax = [&](int op) {
      return graph_.op(op).kind == OpKind::Select && find_products(graph_.op(op));
    };
    const auto select = std::find_if(ops_.begin(), ops_.end(), is_read_by_softmax);
    if (select == ops_.end() || !find_mask(graph_.op(*select))) return std::nullopt;
    if (!find_axes() || !has_known_axes()) return std::nullopt;
    const int64_t step =
        std::max((columns_ + kMostLengths * kLengthStep - 1) / (kMostLengths * kLengthStep), int64_t{1}) * kLengthStep;
    for (int64_t length = step; length < columns_; length += step) mask_.lengths.push_back(length);
    return mask_;
  }

 private:
  const Op* maker(ValueIndex value) const {
    const int op = graph_.value(value).producer.op;
    return op >= 0 && std::binary_search(ops_.begin(), ops_.end(), op) ? &graph_.op(op) : nullptr;
  }
  const Op* only_reader(ValueIndex value) const {
    const auto& readers = graph_.value(value).consumers;
    return readers.size() == 1 && std::binary_search(ops_.begin(), ops_.end(), readers[0].op) ? &graph_.op(readers[0].op)
                                                                                              : nullptr;
  }
  bool is_number_from_outside(ValueIndex value) const {
    return maker(value) == nullptr && graph_.tensor(value).element_count() == 1;
  }

  // Select, SoftMax and MatMul in a chain without other readers.
  bool find_products(const Op& select) {
    softmax_ = only_reader(select.outputs[0]);
    if (softmax_ == nullptr || softmax_->kind != OpKind::SoftMax) return false;
    const LogicalTensor& scores = graph_.tensor(select.outputs[0]);
    axis_ = wrap_axis(softmax_->attribute<int64_t>("axis"), scores.rank());
    columns_ = (*scores.shape)[static_cast<size_t>(axis_)];
    product_ = only_reader(softmax_->outputs[0]);
    if (product_ == nullptr || !is_matrix_product(*product_) || product_->inputs[0] != softmax_->outputs[0]) return false;
    mask_.values = product_->inputs[1];
    return columns_ >= kFewestColumns && maker(mask_.values) == nullptr;
  }

  // rows >= columns, rows > columns, and the same with both sides or both cases exchanged.
  bool find_mask(const Op& select) {
    const Op* const compare = maker(select.inputs[0]);
    if (compare == nullptr) return false;
    const OpKind kind = compare->kind;
    const bool is_greater = kind == OpKind::GreaterEqual || kind == OpKind::Greater;
    if (!is_greater && kind != OpKind::LessEqual && kind != OpKind::Less) return false;
    const auto first = position_of(compare->inputs[0]), second = position_of(compare->inputs[1]);
    if (!first || !second) return false;
    // first >= second or second >= first, or strictly
    Position great = is_greater ? *first : *second, small = is_greater ? *second : *first;
    bool is_strict = kind == OpKind::Greater || kind == OpKind::Less;
    const bool keeps_great_rows = is_row(great);
    if (!keeps_great_rows) {  // columns >= rows hides, and the rest is seen
      std::swap(great, small);
      is_strict = !is_strict;
    }
    if (!is_row(great) || small.axis != axis_) return false;
    mask_.hidden = select.inputs[keeps_great_rows ? 2 : 1];
    columns_position_ = small.value;
    mask_.seen_more = great.added - small.added + (is_strict ? 0 : 1);
    mask_.offsets = great.offsets;
    for (const CausalMask::Offset& offset : small.offsets) mask_.offsets.push_back({offset.value, -offset.sign});
    return is_number_from_outside(mask_.hidden) && is_minus_infinity_or_unknown(mask_.hidden);
  }

  bool is_minus_infinity_or_unknown(ValueIndex value) const {
    const std::optional<double>& known = graph_.value(value).constant;
    return !known || (std::isinf(*known) && *known < 0);
  }

  bool is_row(const Position& position) const {
    const AxisLoops& cut = region_.cut.at(position.value);
    return cut[static_cast<size_t>(position.axis)] == static_cast<int>(region_.row_loop());
  }

  std::optional<Position> position_of(ValueIndex value) const {
    const Op* const op = maker(value);
    if (op == nullptr) return std::nullopt;
    if (const int axis = axis_of_positions(graph_, *op); axis >= 0) return Position{op->outputs[0], axis, 0, {}};
    if (op->kind != OpKind::Add && op->kind != OpKind::Subtract) return std::nullopt;
    const bool is_first_number = op->kind == OpKind::Add && is_number_from_outside(op->inputs[0]);
    const ValueIndex number = op->inputs[is_first_number ? 0 : 1];
    if (!is_number_from_outside(number)) return std::nullopt;
    std::optional<Position> position = position_of(op->inputs[is_first_number ? 1 : 0]);
    const DataType dtype = graph_.tensor(number).dtype;
    if (!position || (dtype != DataType::s32 && dtype != DataType::s64)) return std::nullopt;
    const int sign = op->kind == OpKind::Add ? 1 : -1;
    if (const std::optional<double>& known = graph_.value(number).constant)
      position->added += sign * static_cast<int64_t>(*known);
    else
      position->offsets.push_back({number, sign});
    return position;
  }

  // Cuts the ops along the columns too. Only the softmax and the product behind it may reduce them.
  bool find_axes() {
    TileRegion whole = region_;
    const auto loop = static_cast<int>(whole.loops.size());
    whole.loops.push_back(columns_);
    whole.columns = columns_;
    const ValueIndex scores = softmax_->inputs[0];
    AxisLoops axes = region_.cut.at(scores);
    axes[static_cast<size_t>(axis_)] = loop;
    whole.cut = {{scores, axes}};
    std::vector<int> waiting(ops_.begin(), ops_.end());
    while (!waiting.empty()) {
      const auto next = next_to_cut(graph_, waiting, whole.cut);
      if (next == waiting.end()) return false;
      const Op& op = graph_.op(*next);
      if (!is_marker(op) && schema_of(op.kind).traits.positional) return false;
      const bool may_reduce = &op == softmax_ || &op == product_;
      if (!cut_op(whole, graph_, op, may_reduce ? Reduces::columns : Reduces::none).empty()) return false;
      waiting.erase(next);
    }
    for (const auto& [value, cut] : whole.cut) {
      const auto axis = std::find(cut.begin(), cut.end(), loop);
      if (axis == cut.end()) continue;
      if (maker(value) != nullptr && is_needed_(value)) return false;
      mask_.axes[value] = static_cast<int>(axis - cut.begin());
    }
    return true;
  }

  bool has_known_axes() const {
    const auto columns = mask_.axes.find(columns_position_);
    return columns != mask_.axes.end() && columns->second == axis_ && mask_.axes.contains(mask_.values);
  }

  const Graph& graph_;
  const TileRegion& region_;
  const std::span<const int> ops_;
  const std::function<bool(ValueIndex)>& is_needed_;
  const Op *softmax_ = nullptr, *product_ = nullptr;
  int axis_ = 0;
  int64_t columns_ = 0;
  ValueIndex columns_position_ = kNoValue;
  CausalMask mask_;
};

}  // namespace

std::optional<CausalMask> find_causal_mask(const Graph& graph, const TileRegion& region, std::span<const int> ops,
                                           const std::function<bool(ValueIndex)>& is_needed) {
  if (!region.sums.empty() || region.columns > 0) return std::nullopt;
  return MaskFinder(graph, region, ops, is_needed).find();
}

}  // namespace lamina
