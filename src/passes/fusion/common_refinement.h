// Splits the dims of two shapes with the same elements into common factors.
#pragma once

#include <optional>
#include <vector>

#include "interface/logical_tensor.h"

namespace lamina {

// Two lists of extents with equal products, split into the finest common pieces: {6, 4} and {2, 12} become 2, 3, 4. `a` and
// `b` are the numbers of pieces per extent. Lists that match dim by dim (unknown extents match anything) are not split.
struct Refinement {
  Dims pieces;
  std::vector<int> a, b;
};
std::optional<Refinement> common_refinement(const Dims& a, const Dims& b);

}  // namespace lamina
