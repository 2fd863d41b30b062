// What LayerNorm and RMSNorm share when they are written out: the root, the scale and the checks.
#pragma once

#include "passes/patterns/rows.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {

// a / root(shifted) * gamma, in any order of the three.
Term normalized_and_scaled(Term a, Term shifted, Term gamma);

// The axes are the last ones, the numbers those of the row, epsilon a positive number of f32.
bool is_norm(const Match& match, const std::vector<std::string_view>& side_inputs);

// begin_norm_axis and epsilon.
Attributes norm_attributes(const Match& match, const std::vector<std::string_view>& side_inputs);

// x with the type that the root op makes: norms have one type for both.
ValueIndex norm_src(const Match& match);

}  // namespace lamina::pattern
