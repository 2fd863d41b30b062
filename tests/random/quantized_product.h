// Products of quantised factors, in the forms that models have them.
#pragma once

#include "random/recipe_builder.h"

namespace lamina::testing {

// Adds Dequantize or DynamicDequantize of both factors (of one alone: weights only), perhaps a TypeCast behind each, a product
// (any op that contracts), and perhaps Quantize behind it. False: the schemas refuse what was drawn, and nothing was added.
bool add_quantized_product(RecipeBuilder& graph, Rng& rng);

}  // namespace lamina::testing
