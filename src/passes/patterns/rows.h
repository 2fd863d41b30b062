// Conditions of norms and softmax that trees of terms cannot express. Every reduction of the match runs over the same axes of
// x. Every value has the shape of x or is one value per row, aligned with x where an op reads both.
#pragma once

#include <optional>
#include <vector>

#include "passes/core/pattern.h"

namespace lamina::pattern {

struct RowShapes {
  std::vector<int> axes;  // reduced, ascending
  Dims full;              // shape of x
  Dims kept;              // of one value per row: reduced dims are 1
  Dims dropped;           // the same without the reduced dims

  bool trailing() const;                // the axes are the last ones
  std::optional<int64_t> size() const;  // elements of a row, if known
};

// Nothing if x has no known rank, the reductions differ, or a value of the match has another shape. Values under the names in
// `side_inputs` may have any shape that broadcasts.
std::optional<RowShapes> row_shapes(const Match& match, std::string_view x, const std::vector<std::string_view>& side_inputs);

// Whether the numbers by which row_mean divides or multiplies equal the size of the row.
bool counts_match(const Match& match, const RowShapes& rows);

// Whether every value of the match, except constants, has the shape of x.
bool all_shaped_like(const Match& match, std::string_view x);

}  // namespace lamina::pattern
