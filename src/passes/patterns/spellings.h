// The forms in which graphs write a formula in small ops, as terms. Each function matches every form of one mathematical
// expression, so that a pattern reads like its formula.
#pragma once

#include "passes/core/pattern.h"

namespace lamina::pattern {

Term operator-(Term a);          // a * -1, 0 - a, a / -1
Term operator-(Term a, Term b);  // a - b, a + (-b)
Term operator/(Term a, Term b);  // a / b, a * (1 / b)
Term reciprocal(Term a);         // Reciprocal, 1 / a, a^-1
Term scaled(Term a, double by);  // a * by, a / (1 / by)

Term square(Term a);                        // Square, a^2, a * a
Term square_of_difference(Term a, Term b);  // SquaredDifference, or the square of a - b
Term cube(Term a);                          // a^3, a^2 * a
Term root(Term a);                          // Sqrt, a^0.5
Term reciprocal_root(Term a);               // 1 / root, root of 1 / a, a^-0.5
Term over_root(Term a, Term b);             // a / root(b), a * reciprocal_root(b)

Term power(Term a, float exponent);
Term exponential(Term a);
Term logarithm(Term a);

// The mean along the reduced axes: ReduceMean, or ReduceSum with the number "count" or "inverse_count". The pattern compares
// that number with the size of the row (RowShapes::counts_match).
Term row_mean(Term a);
Term row_sum(Term a);
Term row_max(Term a);

// 1 / (1 + exp(-a)). minus_a lists forms of -a beyond those of operator-.
Term logistic(Term a, Term minus_a);

// Casts between floating-point types, and reshapes that only add or drop dims of extent 1.
bool is_cast_or_unit_reshape(const Graph& graph, const Op& op);

// A number of the matched ops as an attribute: rounded to f32, unless the ops compute in f64.
Attribute as_attribute(const Match& match, double number);
bool is_finite(const Match& match, double number);  // as an attribute

}  // namespace lamina::pattern
