#include "passes/core/reasons.h"

namespace lamina {

const std::vector<ReasonEntry>& reason_table() {
  static const std::vector<ReasonEntry> table{
      {ReasonCode::raised, "raised", "Smaller ops of the graph compute this op's formula; the op replaces them."},
      {ReasonCode::not_raised_search_limit, "not_raised.search_limit",
       "The op may be the end of a formula, but the search for it reached its limit, so the op is unchanged."},
      {ReasonCode::dropped, "dropped", "Ops of the graph in front of this one change nothing and are not run."},
      {ReasonCode::anchor, "anchor", "The fusion group started with this op: the group has its loop nest."},
      {ReasonCode::fused_producer, "fused.producer", "The op produces a value that an op of the group reads."},
      {ReasonCode::fused_consumer, "fused.consumer", "The op reads a value that an op of the group produces."},
      {ReasonCode::fused_sibling, "fused.sibling", "The op reads a tensor that an op of the group reads too."},
      {ReasonCode::fused_marker, "fused.marker",
       "End computes nothing and is in the partition of the op that produces its value."},
      {ReasonCode::joined, "joined",
       "The op is connected to library ops (MatMul, convolutions, pools) and is a step of a partition with them."},
      {ReasonCode::alone_shape_mismatch, "alone.shape_mismatch",
       "The op's dims do not correspond to the dims of the loop nest through the values that they share."},
      {ReasonCode::alone_inner_axes_differ, "alone.inner_axes_differ",
       "The op normalises or reduces other axes than the loop nest does."},
      {ReasonCode::alone_would_cycle, "alone.would_cycle",
       "An op outside is on a path between the two: if they were fused, they would depend on each other in a cycle."},
      {ReasonCode::alone_search_limit, "alone.search_limit",
       "Too many ops are between the two: the search for a path between them reached its limit."},
      {ReasonCode::alone_partial_output, "alone.partial_output",
       "The op's result is needed outside but does not vary along every outer dim of the loop nest, which would compute it "
       "repeatedly."},
      {ReasonCode::alone_recompute_limit, "alone.recompute_limit",
       "The loop nest would recompute the op's result for each step along an outer dim, and already does so for the most ops "
       "allowed."},
      {ReasonCode::alone_layout, "alone.layout",
       "The op moves elements across the inner dims of the loop nest, or reshapes without common dims."},
      {ReasonCode::alone_column_result, "alone.column_result",
       "The value is a sum over all rows, complete only when the loop nest has ended."},
      {ReasonCode::alone_part, "alone.part", "One op reads a part of the other's result, which must be in memory first."},
      {ReasonCode::alone_wider, "alone.wider",
       "The op converts a value to a wider type for another loop nest, which converts it while it reads."},
      {ReasonCode::alone_mixed_f64, "alone.mixed_f64", "A loop nest computes in f64 or in f32, not in both."},
      {ReasonCode::alone_unsupported, "alone.unsupported", "The backend does not run the op."},
      {ReasonCode::on_reference, "on_reference",
       "The backend does not run the op, and the caller allows the reference's plain loops in its place."},
      {ReasonCode::alone_library_op, "alone.library_op",
       "A library op runs over whole tensors, in a library or in plain loops; no op is fused with it."},
      {ReasonCode::alone_no_loop_nest, "alone.no_loop_nest", "The op cannot be written as a loop nest."},
      {ReasonCode::alone_policy_debug, "alone.policy_debug", "Policy debug puts every op in its own partition."},
  };
  return table;
}

std::string_view name_of(ReasonCode code) {
  for (const ReasonEntry& entry : reason_table())
    if (entry.code == code) return entry.name;
  return "unknown";
}

Reason make_reason(ReasonCode code, std::string text, int other_op) {
  return {std::string(name_of(code)), std::move(text), other_op};
}

}  // namespace lamina
