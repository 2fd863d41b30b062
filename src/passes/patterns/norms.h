// Parts of the LayerNorm and RMSNorm patterns: the root, the scale and the checks.
#pragma once

#include "passes/patterns/rows.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {

// a / root(shifted) * gamma, in any order of the three.
Term normalized_and_scaled(Term a, Term shifted, Term gamma);

// The axes are the last ones, the numbers match the size of the row, and epsilon is a positive number that an attribute can
// hold.
bool is_norm(const Match& match, const std::vector<std::string_view>& side_inputs);

// begin_norm_axis and epsilon.
Attributes norm_attributes(const Match& match, const std::vector<std::string_view>& side_inputs);

// x with the type of the root op's output: norms have one type for both.
ValueIndex norm_src(const Match& match);

}  // namespace lamina::pattern
