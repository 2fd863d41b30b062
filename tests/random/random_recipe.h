// Valid graphs over the whole op set, generated from the schemas and a seed.
#pragma once

#include <cstdint>

#include "random/recipe.h"

namespace lamina::testing {

struct RandomGraphs {
  int most_ops = 10;
  int64_t most_elements = 16000;  // per tensor
};

// The same seed gives the same graph. Shapes contain ones and zeros, operands broadcast, inputs have any strides, values have
// several consumers, and types are any that the schemas allow.
Recipe random_recipe(uint64_t seed, const RandomGraphs& wanted = {});

}  // namespace lamina::testing
