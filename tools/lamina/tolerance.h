// The allowed error of a result relative to the float64 reference, from one table of the errors of ops and one of dtypes.
#pragma once

#include "interface/graph.h"

namespace lamina::driver {

struct Tolerance {
  // The error before the last rounding, relative to max(|expected|, the root mean square of the expected tensor).
  double computed = 0;
  // Half a unit in the last place of the output's dtype: relative for normal numbers (rounding), absolute below them
  // (smallest).
  double rounding = 0;
  double smallest = 0;
  // An op between the inputs and the output jumps or amplifies (Round, a comparison, a division by a computed value): a few
  // elements may differ much in a correct result.
  bool may_jump = false;
  // The ops between the inputs and the output only copy, convert, compare or select values, or compute with integers: the
  // output must equal the reference. If all of them copy, the sign of a zero must be equal too.
  bool exact = false;
  bool copied = false;
  // An op in between reads a computed value and has no result for some values (Log, Sqrt, Reciprocal): where the reference
  // has none, the result depends on rounding.
  bool may_meet_pole = false;
  // A mean may be much smaller than the averaged values, so their magnitude also scales the error.
  ValueIndex averaged = kNoValue;
};

// The tolerance of one value, assuming exact inputs of the op that produces it.
Tolerance tolerance_of_step(const Graph& subgraph, const Op& op, ValueIndex value);

// The tolerance of an output of a partition. `subgraph` contains only that partition; `output` is one of its values.
Tolerance tolerance_of(const Graph& subgraph, ValueIndex output);

}  // namespace lamina::driver
