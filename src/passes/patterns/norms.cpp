#include "passes/patterns/norms.h"

namespace lamina::pattern {

Term normalized_and_scaled(Term a, Term shifted, Term gamma) {
  const Term rstd = reciprocal_root(shifted);
  return either({over_root(a, shifted) * gamma, a * (rstd * gamma), (a * gamma) * rstd,
                 op(OpKind::Divide, {a * gamma, root(shifted)}), a * op(OpKind::Divide, {gamma, root(shifted)})});
}

bool is_norm(const Match& match, const std::vector<std::string_view>& side_inputs) {
  const auto rows = row_shapes(match, "x", side_inputs);
  const double epsilon = match.number("epsilon").value_or(0);
  return rows && rows->trailing() && counts_match(match, *rows) && *number_of(as_attribute(match, epsilon)) > 0 &&
         is_finite(match, epsilon);
}

Attributes norm_attributes(const Match& match, const std::vector<std::string_view>& side_inputs) {
  const auto rows = row_shapes(match, "x", side_inputs);
  return {{"begin_norm_axis", static_cast<int64_t>(rows->axes.front())},
          {"epsilon", as_attribute(match, *match.number("epsilon"))}};
}

ValueIndex norm_src(const Match& match) { return match.value("x", match.graph().tensor(match.root_op().outputs[0]).dtype); }

}  // namespace lamina::pattern
