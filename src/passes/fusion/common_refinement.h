// Dims of two shapes that hold the same elements, cut until they agree.
#pragma once

#include <optional>
#include <vector>

#include "interface/logical_tensor.h"

namespace lamina {

// Two lists of extents of one product, cut into the finest common pieces: {6, 4} and {2, 12} give 2, 3, 4. `a` and `b` say
// how many pieces each extent was cut into. Lists that match dim by dim (unknown extents match anything) stay as they are.
struct Refinement {
  Dims pieces;
  std::vector<int> a, b;
};
std::optional<Refinement> common_refinement(const Dims& a, const Dims& b);

}  // namespace lamina
