// Holds a backward op against finite differences of its forward op.
#pragma once

#include "backends/reference/op_case.h"
#include "support/finite_difference.h"

namespace lamina::testing {

// d (sum of weights * forward result) / d (input of forward).
inline Numbers gradient_by_differences(const OpCase& forward, size_t input, const Numbers& weights) {
  const auto loss = [&](const Numbers& x) {
    OpCase op = forward;
    return weighted_sum(weights, op.set(input, x).result(0));
  };
  return numeric_gradient(loss, forward.numbers(input));
}

}  // namespace lamina::testing
