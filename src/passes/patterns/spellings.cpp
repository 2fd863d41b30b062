#include "passes/patterns/spellings.h"

#include <algorithm>
#include <cmath>

#include "interface/data_type.h"

namespace lamina::pattern {

Term operator-(Term a) { return either({a * -1.0, op(OpKind::Subtract, {0.0, a}), op(OpKind::Divide, {a, -1.0})}); }

Term operator-(Term a, Term b) { return either({op(OpKind::Subtract, {a, b}), a + -b}); }

Term operator/(Term a, Term b) { return either({op(OpKind::Divide, {a, b}), a * reciprocal(b)}); }

Term reciprocal(Term a) { return either({op(OpKind::Reciprocal, {a}), op(OpKind::Divide, {1.0, a}), power(a, -1)}); }

Term scaled(Term a, double by) { return either({a * by, op(OpKind::Divide, {a, 1 / by})}); }

Term square(Term a) { return either({op(OpKind::Square, {a}), power(a, 2), a * a}); }

Term square_of_difference(Term a, Term b) { return either({op(OpKind::SquaredDifference, {a, b}), square(a - b)}); }

Term cube(Term a) { return either({power(a, 3), square(a) * a}); }

Term root(Term a) { return either({op(OpKind::Sqrt, {a}), power(a, 0.5F)}); }

Term reciprocal_root(Term a) { return either({reciprocal(root(a)), root(reciprocal(a)), power(a, -0.5F)}); }

Term over_root(Term a, Term b) { return either({op(OpKind::Divide, {a, root(b)}), a * reciprocal_root(b)}); }

Term power(Term a, float exponent) {
  return op(OpKind::Pow, {a}).where([exponent](const Op& op) { return op.number("beta") == static_cast<double>(exponent); });
}

Term exponential(Term a) { return op(OpKind::Exp, {a}); }
Term logarithm(Term a) { return op(OpKind::Log, {a}); }

Term row_sum(Term a) { return op(OpKind::ReduceSum, {a}); }
Term row_max(Term a) { return op(OpKind::ReduceMax, {a}); }

Term row_mean(Term a) {
  const Term inverse = number("inverse_count"), count = number("count");
  return either({op(OpKind::ReduceMean, {a}), row_sum(a) * inverse, op(OpKind::Divide, {row_sum(a), count}),
                 row_sum(a * inverse), row_sum(op(OpKind::Divide, {a, count}))});
}

Term logistic(Term a, Term minus_a) {
  const Term growth = exponential(a);
  return either({op(OpKind::Sigmoid, {a}), reciprocal(exponential(minus_a) + 1.0), growth / (growth + 1.0)});
}

Attribute as_attribute(const Match& match, double number) {
  return number_attribute(number, match.graph().tensor(match.root_op().outputs[0]).dtype == DataType::f64);
}

bool is_finite(const Match& match, double number) { return std::isfinite(*number_of(as_attribute(match, number))); }

bool is_cast_or_unit_reshape(const Graph& graph, const Op& op) {
  if (op.kind != OpKind::TypeCast && op.kind != OpKind::StaticReshape) return false;
  if (op.inputs.size() != 1 || op.outputs.size() != 1 || op.inputs[0] == kNoValue || op.outputs[0] == kNoValue) return false;
  const LogicalTensor& src = graph.tensor(op.inputs[0]);
  const LogicalTensor& dst = graph.tensor(op.outputs[0]);
  if (op.kind == OpKind::TypeCast) return is_floating(src.dtype) && is_floating(dst.dtype);
  if (!src.shape || !dst.shape) return false;
  Dims before = *src.shape, after = *dst.shape;
  std::erase(before, 1);
  std::erase(after, 1);
  return before == after && std::count(after.begin(), after.end(), kUnknownDim) <= 1;
}

}  // namespace lamina::pattern
