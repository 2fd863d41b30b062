// What trees of terms cannot say of norms and softmax: every reduction of the match runs over the same axes of x, and every
// value has the shape of x or one value a row, aligned with x where the two meet.
#pragma once

#include <optional>
#include <vector>

#include "passes/pattern.h"

namespace lamina::pattern {

struct RowShapes {
  std::vector<int> axes;  // reduced, ascending
  Dims full;              // shape of x
  Dims kept;              // a value a row: reduced dims are 1
  Dims dropped;           // the same without the reduced dims

  bool trailing() const;                // the axes are the last ones
  std::optional<int64_t> size() const;  // elements of a row, where they are known
};

// Nothing when x has no known rank, the reductions differ, or a value of the match has another shape. Values under the names in
// `side_inputs` may be anything that broadcasts.
std::optional<RowShapes> row_shapes(const Match& match, std::string_view x, const std::vector<std::string_view>& side_inputs);

// The numbers that row_mean divides or multiplies by are those of the row.
bool counts_match(const Match& match, const RowShapes& rows);

// Every value of the match has the shape of x, but for constants.
bool all_shaped_like(const Match& match, std::string_view x);

}  // namespace lamina::pattern
