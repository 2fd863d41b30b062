#include <cmath>
#include <numbers>

#include "passes/patterns/all.h"
#include "passes/patterns/rows.h"
#include "passes/patterns/spellings.h"

namespace lamina::pattern {
namespace {

constexpr double kCubic = 0.044715;
const double kSlope = std::sqrt(2 / std::numbers::pi);

// slope * (x + 0.044715 * x^3), in factored and expanded forms.
Term polynomial(Term x, double slope) {
  const Term cubic = scaled(square(x), kCubic);
  const Term bent = cubic + 1.0;
  return either({scaled(x + scaled(cube(x), kCubic), slope), scaled(x + cubic * x, slope), scaled(x * bent, slope),
                 scaled(x, slope) * bent, x * scaled(bent, slope), x * (scaled(square(x), kCubic * slope) + slope),
                 scaled(x, slope) + scaled(cube(x), kCubic * slope)});
}

//   x ──┬──> polynomial ──> Tanh ──> Add 1 ──┐
//       └──> Multiply 0.5 ───────────────> Multiply ──> dst
// The factor 0.5 may be applied to either factor or to the product. (1 + tanh(u)) / 2 is sigmoid(2 u), which is the form with
// one logistic function. The erf form does not occur, because no op computes erf.
Term written_out(Term x) {
  const Term t = op(OpKind::Tanh, {polynomial(x, kSlope)});
  const Term gate = t + 1.0;
  const Term logit = polynomial(x, 2 * kSlope);
  return either({scaled(x * gate, 0.5), scaled(x, 0.5) * gate, x * scaled(gate, 0.5), x * (scaled(t, 0.5) + 0.5),
                 scaled(x, 0.5) + scaled(x, 0.5) * t, scaled(x + x * t, 0.5), x * logistic(logit, polynomial(x, -2 * kSlope)),
                 x / (exponential(either({-logit, polynomial(x, -2 * kSlope)})) + 1.0)});
}

}  // namespace

Decomposition gelu() {
  return {{"gelu_tanh", written_out(value("x")), is_cast_or_unit_reshape,
           [](const Match& match) { return all_shaped_like(match, "x"); }},
          [](const Match& match) -> RaisedOp {
            const DataType dtype = match.graph().tensor(match.root_op().outputs[0]).dtype;
            return {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}, {{"src", match.value("x", dtype)}}};
          }};
}

}  // namespace lamina::pattern
