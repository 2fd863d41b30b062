// Products of quantised factors, in the forms that occur in models.
#pragma once

#include "random/recipe_builder.h"

namespace lamina::testing {

// Adds Dequantize or DynamicDequantize of both factors (or only of the weights), sometimes a TypeCast after each, a product
// (any contraction), and sometimes a Quantize after it. Returns false and adds nothing if the schemas reject the drawn ops.
bool add_quantized_product(RecipeBuilder& graph, Rng& rng);

}  // namespace lamina::testing
