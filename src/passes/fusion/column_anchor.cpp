#include "passes/fusion/column_anchor.h"

#include <algorithm>

#include "interface/op_schema.h"

namespace lamina {
namespace {

// Column sums have a partial sum for each block of 64 rows: four blocks for two threads, and partial sums that are small
// beside the tensor.
constexpr int64_t kMinSummedRows = 256;

constexpr int64_t kMinColumns = 64;  // a row fills vectors of all widths

// Readers that are searched for the summed dims; where there are more, one may have them.
constexpr size_t kMaxReaders = 16;

bool is_layout(const Op& op) { return schema_of(op.kind).op_class == OpClass::layout; }

// Whether a loop nest computes the value. Layout ops, which move it only, are passed over.
bool is_made_by_a_nest(const FusionState& state, ValueIndex value) {
  while (value != kNoValue) {
    const int producer = state.graph.value(value).producer.op;
    if (producer < 0 || !state.runnable[static_cast<size_t>(producer)]) return false;
    const IterationView& view = state.views[static_cast<size_t>(producer)];
    if (!view.why_not.empty() || view.opaque_copy) return false;
    const Op& op = state.graph.op(producer);
    if (!is_layout(op)) return !view.has_inner();
    value = op.inputs[0];
  }
  return false;
}

// Whether an op that could join the nest reads the sum, itself or through ops of its size, beside more elements.
bool is_read_by_a_larger_nest(const FusionState& state, ValueIndex sum) {
  const int64_t size = state.graph.tensor(sum).element_count();
  std::vector<ValueIndex> open{sum};
  for (size_t next = 0; next < open.size() && next < kMaxReaders; ++next) {
    for (const Port& reader : state.graph.value(open[next]).consumers) {
      const Op& op = state.graph.op(reader.op);
      if (is_marker(op) || !state.views[static_cast<size_t>(reader.op)].why_not.empty()) continue;
      for (const ValueIndex result : op.outputs) {
        if (result == kNoValue) continue;
        const LogicalTensor& tensor = state.graph.tensor(result);
        if (!tensor.has_full_shape() || tensor.element_count() > size) return true;
        open.push_back(result);
      }
    }
  }
  return open.size() > kMaxReaders;
}

}  // namespace

std::optional<std::vector<bool>> inner_dims_below_sum(const FusionState& state, int position) {
  const Op& op = state.graph.op(position);
  const IterationView& view = state.views[static_cast<size_t>(position)];
  if (!schema_of(op.kind).traits.only_sums || !view.has_inner() || !is_floating(state.graph.tensor(op.outputs[0]).dtype))
    return std::nullopt;
  if (std::find(view.extents.begin(), view.extents.end(), kUnknownDim) != view.extents.end()) return std::nullopt;
  size_t first_column = view.extents.size();
  while (first_column > 0 && !view.inner[first_column - 1]) --first_column;
  int64_t columns = 1, summed = 1;
  std::vector<bool> inner(view.extents.size(), false);
  for (size_t dim = 0; dim < view.extents.size(); ++dim) {
    inner[dim] = dim >= first_column;
    if (inner[dim]) columns *= view.extents[dim];
    if (view.inner[dim]) summed *= view.extents[dim];
  }
  if (columns < kMinColumns || summed < kMinSummedRows) return std::nullopt;
  if (!is_made_by_a_nest(state, op.inputs[0]) || is_read_by_a_larger_nest(state, op.outputs[0])) return std::nullopt;
  return inner;
}

}  // namespace lamina
