#include "kernels/viewed_values.h"

#include <algorithm>

#include "interface/op_schema.h"

namespace lamina::kernel {

namespace {

Dims strides_of(const LogicalTensor& tensor) { return tensor.has_strides() ? tensor.strides : dense_strides(*tensor.shape); }

// Along axes of extent 1 there are no steps.
bool are_same(const LogicalTensor& tensor, const Dims& strides, const Dims& others) {
  for (size_t axis = 0; axis < strides.size(); ++axis)
    if ((*tensor.shape)[axis] > 1 && strides[axis] != others[axis]) return false;
  return true;
}

bool is_row_major(const LogicalTensor& tensor) { return are_same(tensor, strides_of(tensor), dense_strides(*tensor.shape)); }

// Whether each element of the result is where the input has it.
bool keeps_places(const Graph& graph, const Op& op) {
  const LogicalTensor &src = graph.tensor(op.inputs[0]), &dst = graph.tensor(op.outputs[0]);
  if (bits_of(src.dtype) != bits_of(dst.dtype)) return false;
  switch (schema_of(op.kind).nest) {
    case LoopNest::reshaped: return src.dtype == dst.dtype && is_row_major(src) && is_row_major(dst);
    case LoopNest::reinterpreted: return src.rank() == dst.rank() && is_row_major(src) && is_row_major(dst);
    case LoopNest::transposed: {
      const Dims strides = strides_of(src);
      Dims permuted;
      for (const int64_t axis : op.attribute<std::vector<int64_t>>("order"))
        permuted.push_back(strides[static_cast<size_t>(wrap_axis(axis, src.rank()))]);
      if (permuted.empty()) permuted.assign(strides.rbegin(), strides.rend());
      return src.dtype == dst.dtype && are_same(dst, strides_of(dst), permuted);
    }
    default: return false;
  }
}

}  // namespace

Views viewed_values(const Graph& graph, std::span<const FusionGroup> groups, std::span<const ValueIndex> outputs,
                    const std::vector<bool>& kept) {
  Views views{{}, std::vector<bool>(graph.ops().size(), false)};
  const auto is_output = [&](ValueIndex value) { return std::find(outputs.begin(), outputs.end(), value) != outputs.end(); };
  const auto has_place = [&](ValueIndex value) { return kept[static_cast<size_t>(value)] || views.memory_of.contains(value); };
  for (const FusionGroup& group : groups) {
    if (group.ops.size() != 1 || !group.no_loop_nest.empty()) continue;
    const int position = group.ops.front();
    const Op& op = graph.op(position);
    if (op.outputs.size() != 1 || !keeps_places(graph, op)) continue;
    ValueIndex lies = op.outputs[0], in = op.inputs[0];
    if (is_output(lies)) {
      std::swap(lies, in);
      if (graph.value(lies).producer.op < 0 || is_output(lies)) continue;
    }
    if (has_place(lies)) continue;
    views.memory_of[lies] = in;
    views.needs_no_step[static_cast<size_t>(position)] = true;
  }
  return views;
}

}  // namespace lamina::kernel
