#include "passes/patterns/rows.h"

#include <algorithm>

#include "interface/op_schema.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {
namespace {

bool is_reduction(OpKind kind) { return kind == OpKind::ReduceMean || kind == OpKind::ReduceSum || kind == OpKind::ReduceMax; }

std::optional<std::vector<int>> reduced_axes(const Op& op, int rank) {
  const auto found = op.attributes.find("axes");
  const auto* given = found == op.attributes.end() ? nullptr : std::get_if<std::vector<int64_t>>(&found->second);
  if (given == nullptr || given->empty() || rank == 0) return std::nullopt;
  std::vector<int> axes;
  for (const int64_t axis : *given) axes.push_back(wrap_axis(axis, rank));
  std::sort(axes.begin(), axes.end());
  axes.erase(std::unique(axes.begin(), axes.end()), axes.end());
  return axes;
}

// The axes that all reductions of the match share.
std::optional<std::vector<int>> common_axes(const Match& match, int rank) {
  std::optional<std::vector<int>> common;
  for (const int position : match.ops()) {
    const Op& op = match.graph().op(position);
    if (!is_reduction(op.kind)) continue;
    const auto axes = reduced_axes(op, rank);
    if (!axes || (common && *common != *axes)) return std::nullopt;
    common = axes;
  }
  return common;
}

class ShapeCheck {
 public:
  ShapeCheck(const Match& match, const RowShapes& rows, const std::vector<std::string_view>& side_inputs)
      : graph_(match.graph()), rows_(rows) {
    for (const std::string_view name : side_inputs)
      for (const ValueIndex value : match.uses(name)) side_inputs_.push_back(value);
  }

  // An op with a full result reads full values and values per row that keep the reduced dims. An op with a result per row
  // reads values per row of the same form.
  bool fits(const Op& op) const {
    const Dims* made = shape_of(op.outputs[0]);
    if (made == nullptr || (*made != rows_.full && *made != rows_.kept && *made != rows_.dropped)) return false;
    if (op.kind == OpKind::StaticReshape) return true;
    if (is_reduction(op.kind)) return is_shaped(op.inputs[0], rows_.full);
    return (*made == rows_.full && reads_only(op, {&rows_.full, &rows_.kept})) ||
           (*made == rows_.kept && reads_only(op, {&rows_.kept})) ||
           (*made == rows_.dropped && reads_only(op, {&rows_.dropped}));
  }

 private:
  const Dims* shape_of(ValueIndex value) const {
    const LogicalTensor& tensor = graph_.tensor(value);
    return tensor.shape ? &*tensor.shape : nullptr;
  }
  bool is_shaped(ValueIndex value, const Dims& shape) const { return shape_of(value) != nullptr && *shape_of(value) == shape; }

  bool reads_only(const Op& op, const std::vector<const Dims*>& shapes) const {
    return std::all_of(op.inputs.begin(), op.inputs.end(), [&](ValueIndex input) {
      return input == kNoValue || is_aside(input) ||
             std::any_of(shapes.begin(), shapes.end(), [&](const Dims* shape) { return is_shaped(input, *shape); });
    });
  }
  bool is_aside(ValueIndex value) const {
    return std::find(side_inputs_.begin(), side_inputs_.end(), value) != side_inputs_.end() ||
           known_constant(graph_, value, is_cast_or_unit_reshape) != kNoValue;
  }

  const Graph& graph_;
  const RowShapes& rows_;
  std::vector<ValueIndex> side_inputs_;
};

RowShapes shapes_of(const Dims& full, std::vector<int> axes) {
  RowShapes rows{std::move(axes), full, full, {}};
  for (size_t i = 0; i < full.size(); ++i) {
    const bool reduced = std::find(rows.axes.begin(), rows.axes.end(), static_cast<int>(i)) != rows.axes.end();
    if (reduced) {
      rows.kept[i] = 1;
    } else {
      rows.dropped.push_back(full[i]);
    }
  }
  return rows;
}

}  // namespace

bool RowShapes::trailing() const {
  return !axes.empty() && axes.back() == static_cast<int>(full.size()) - 1 &&
         axes.back() - axes.front() + 1 == static_cast<int>(axes.size());
}

std::optional<int64_t> RowShapes::size() const {
  Dims extents;
  for (const int axis : axes) extents.push_back(full[static_cast<size_t>(axis)]);
  if (std::find(extents.begin(), extents.end(), kUnknownDim) != extents.end()) return std::nullopt;
  return checked_product(extents, "a row");
}

std::optional<RowShapes> row_shapes(const Match& match, std::string_view x, const std::vector<std::string_view>& side_inputs) {
  const LogicalTensor& src = match.graph().tensor(match.value(x));
  if (!src.shape) return std::nullopt;
  const auto axes = common_axes(match, src.rank());
  if (!axes) return std::nullopt;
  RowShapes rows = shapes_of(*src.shape, *axes);
  const ShapeCheck check(match, rows, side_inputs);
  for (const int position : match.ops())
    if (!check.fits(match.graph().op(position))) return std::nullopt;
  return rows;
}

bool counts_match(const Match& match, const RowShapes& rows) {
  if (!match.has("count") && !match.has("inverse_count")) return true;
  const auto size = rows.size();
  if (!size || *size == 0) return false;
  const auto count = static_cast<double>(*size);
  return match.is_number("count", count) && match.is_number("inverse_count", 1 / count);
}

bool all_shaped_like(const Match& match, std::string_view x) {
  const LogicalTensor& src = match.graph().tensor(match.value(x));
  if (!src.shape) return false;
  const std::vector<int> ops = match.ops();
  return std::all_of(ops.begin(), ops.end(), [&](int position) {
    const Op& op = match.graph().op(position);
    return match.graph().tensor(op.outputs[0]).shape == src.shape;
  });
}

}  // namespace lamina::pattern
