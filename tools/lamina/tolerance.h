// How far a result may lie from the float64 reference: one table of what each op may add to the error, and one of dtypes.
#pragma once

#include "interface/graph.h"

namespace lamina::driver {

struct Tolerance {
  // Error before the last rounding, relative to max(|expected|, the root mean square of the expected tensor).
  double computed = 0;
  // Half a unit in the last place of the output's dtype, relative; and below the normal numbers, absolute.
  double rounding = 0;
  double smallest = 0;
  // Some op between the inputs and the output jumps or amplifies (Round, a comparison, a division by a computed value): a few
  // elements may be far off without anything being wrong.
  bool may_jump = false;
  // Ops between the inputs and the output only move or convert values: the output is the reference's, bit for bit.
  bool exact = false;
  // Some op in between reads a computed value and has no result for all values (Log, Sqrt, Reciprocal): where the reference has
  // none either, rounding decides what comes out.
  bool may_meet_pole = false;
  // A mean may be far smaller than what it is the mean of: this value's magnitude counts too.
  ValueIndex averaged = kNoValue;
};

// Of a value by itself, as if the inputs of the op that makes it were exact.
Tolerance tolerance_of_step(const Graph& subgraph, const Op& op, ValueIndex value);

// For the outputs of a partition, which `subgraph` holds alone. `output` is one of its values.
Tolerance tolerance_of(const Graph& subgraph, ValueIndex output);

}  // namespace lamina::driver
