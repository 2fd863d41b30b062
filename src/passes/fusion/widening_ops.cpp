#include "passes/fusion/widening_ops.h"

#include <algorithm>

namespace lamina {
namespace {

size_t at(int index) { return static_cast<size_t>(index); }

// An elementwise op of one operand with fewer bits.
bool widens(const FusionState& state, int position) {
  const Op& op = state.graph.op(position);
  const IterationView& view = state.views[at(position)];
  if (op.inputs.size() != 1 || op.outputs.size() != 1 || !view.why_not.empty() || view.opaque_copy || view.has_inner())
    return false;
  const LogicalTensor &src = state.graph.tensor(op.inputs[0]), &dst = state.graph.tensor(op.outputs[0]);
  return src.shape == dst.shape && bits_of(src.dtype) < bits_of(dst.dtype);
}

// The group that all readers are in, if it may compute the value: elements are read where the loop nest is. -1: there is none.
int group_of_readers(const FusionState& state, ValueIndex value) {
  int group = -1;
  for (const Port& reader : state.graph.value(value).consumers) {
    const IterationView& view = state.views[at(reader.op)];
    const int of_reader = state.group_of[at(reader.op)];
    const bool may_compute = view.why_not.empty() && !view.opaque_copy && !view.reads_a_part[at(reader.port)];
    if (!may_compute || of_reader < 0 || (group >= 0 && of_reader != group)) return -1;
    group = of_reader;
  }
  return group;
}

}  // namespace

std::vector<bool> widening_ops_for_other_groups(const FusionState& state) {
  std::vector<bool> found(state.graph.ops().size(), false);
  for (size_t i = 0; i < found.size(); ++i) {
    const int op = static_cast<int>(i), group = state.group_of[i];
    if (group < 0 || !widens(state, op)) continue;
    const int producer = state.graph.value(state.graph.op(op).inputs[0]).producer.op;
    if (producer < 0 || state.group_of[at(producer)] != group) continue;
    const int of_readers = group_of_readers(state, state.graph.op(op).outputs[0]);
    found[i] = of_readers >= 0 && of_readers != group;
  }
  return found;
}

std::vector<bool> with_readers(const FusionState& state) {
  std::vector<bool> found(state.graph.ops().size(), false);
  for (size_t i = 0; i < found.size(); ++i) {
    if (!state.is_computed_by_readers(static_cast<int>(i))) continue;
    const std::vector<Port>& readers = state.graph.value(state.graph.ops()[i].outputs[0]).consumers;
    found[i] = std::any_of(readers.begin(), readers.end(),
                           [&](const Port& reader) { return state.group_of[at(reader.op)] == state.group_of[i]; });
  }
  return found;
}

}  // namespace lamina
