// Compares a backward op with finite differences of its forward op.
#pragma once

#include "backends/reference/op_case.h"
#include "support/finite_difference.h"

namespace lamina::testing {

// Returns the sum of weights * forward result, as a function of an input of forward.
inline auto loss_of(const OpCase& forward, size_t input, const Numbers& weights) {
  return [=](const Numbers& x) {
    OpCase op = forward;
    return weighted_sum(weights, op.set(input, x).result(0));
  };
}

// d (sum of weights * forward result) / d (input of forward).
inline Numbers gradient_by_differences(const OpCase& forward, size_t input, const Numbers& weights) {
  return numeric_gradient(loss_of(forward, input, weights), forward.numbers(input));
}

// The same for an op that is linear within 1/4 of each number: the result is exact, even if the op supports no f64.
inline Numbers exact_gradient(const OpCase& forward, size_t input, const Numbers& weights) {
  return numeric_gradient(loss_of(forward, input, weights), forward.numbers(input), 0.25);
}

}  // namespace lamina::testing
