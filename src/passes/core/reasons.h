// The stable codes for every decision of fusion and partitioning, and the table that explains them.
#pragma once

#include <string_view>
#include <vector>

#include "interface/op.h"
#include "interface/partition.h"

namespace lamina {

enum class ReasonCode {
  raised,
  not_raised_search_limit,
  dropped,
  anchor,
  fused_producer,
  fused_consumer,
  fused_sibling,
  fused_marker,
  joined,
  alone_shape_mismatch,
  alone_inner_axes_differ,
  alone_would_cycle,
  alone_search_limit,
  alone_partial_output,
  alone_recompute_limit,
  alone_layout,
  alone_column_result,
  alone_part,
  alone_wider,
  alone_mixed_f64,
  alone_unsupported,
  on_reference,
  alone_library_op,
  alone_no_loop_nest,
  alone_policy_debug,
};

struct ReasonEntry {
  ReasonCode code;
  std::string_view name;     // "alone.shape_mismatch"
  std::string_view meaning;  // for the documentation, one sentence
};
const std::vector<ReasonEntry>& reason_table();
std::string_view name_of(ReasonCode code);

Reason make_reason(ReasonCode code, std::string text, int other_op = -1);

}  // namespace lamina
