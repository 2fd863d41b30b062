#include "passes/patterns/all.h"
#include "passes/patterns/rows.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {
namespace {

//   x ──┬──> (Multiply alpha) ──> Sigmoid ──┐
//       └───────────────────────────────> Multiply ──> dst
// The logistic function may be written out with Exp, or as (1 + tanh(alpha x / 2)) / 2.
Term written_out(Term x) {
  const Term logit = either({x * number("alpha"), op(OpKind::Divide, {x, number("inverse_alpha")}), x});
  const Term minus_logit = either({-logit, x * number("minus_alpha")});
  const Term growth = exponential(logit);
  const Term t = op(OpKind::Tanh, {either({x * number("half_alpha"), op(OpKind::Divide, {x, number("twice_inverse_alpha")})})});
  const Term gate = t + 1.0;
  return either({x * logistic(logit, minus_logit), x / (exponential(minus_logit) + 1.0),
                 op(OpKind::Divide, {x * growth, growth + 1.0}), scaled(x * gate, 0.5), scaled(x, 0.5) * gate,
                 x * scaled(gate, 0.5), x * (scaled(t, 0.5) + 0.5)});
}

double alpha_of(const Match& match) {
  if (const auto alpha = match.number("alpha")) return *alpha;
  if (const auto inverse = match.number("inverse_alpha")) return 1 / *inverse;
  if (const auto minus = match.number("minus_alpha")) return -*minus;
  if (const auto half = match.number("half_alpha")) return 2 * *half;
  if (const auto inverse = match.number("twice_inverse_alpha")) return 2 / *inverse;
  return 1;
}

}  // namespace

Decomposition swish() {
  return {{"swish", written_out(value("x")), is_cast_or_unit_reshape,
           [](const Match& match) { return all_shaped_like(match, "x") && is_finite(match, alpha_of(match)); }},
          [](const Match& match) -> RaisedOp {
            const DataType dtype = match.graph().tensor(match.root_op().outputs[0]).dtype;
            return {OpKind::Swish, {{"alpha", as_attribute(match, alpha_of(match))}}, {{"src", match.value("x", dtype)}}};
          }};
}

}  // namespace lamina::pattern
