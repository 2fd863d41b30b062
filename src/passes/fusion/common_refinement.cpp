#include "passes/fusion/common_refinement.h"

#include <algorithm>

namespace lamina {
namespace {

bool match_dim_by_dim(const Dims& a, const Dims& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin(), [](int64_t x, int64_t y) {
           return x == y || x == kUnknownDim || y == kUnknownDim;
         });
}

bool can_be_cut(const Dims& dims) {
  return std::all_of(dims.begin(), dims.end(), [](int64_t extent) { return extent > 0; });
}

int64_t product(const Dims& dims) { return checked_product(dims, "a shape"); }

}  // namespace

std::optional<Refinement> common_refinement(const Dims& a, const Dims& b) {
  Refinement result;
  if (match_dim_by_dim(a, b)) {
    for (size_t i = 0; i < a.size(); ++i) result.pieces.push_back(a[i] == kUnknownDim ? b[i] : a[i]);
    result.a.assign(a.size(), 1);
    result.b.assign(b.size(), 1);
    return result;
  }
  if (!can_be_cut(a) || !can_be_cut(b) || product(a) != product(b)) return std::nullopt;
  size_t i = 0, j = 0;
  int64_t rest_a = 1, rest_b = 1;  // the remaining factors of a[i - 1] and b[j - 1]
  while (rest_a != 1 || rest_b != 1 || i < a.size() || j < b.size()) {
    if (rest_a == 1 && i < a.size()) {
      rest_a = a[i++];
      result.a.push_back(0);
    }
    if (rest_b == 1 && j < b.size()) {
      rest_b = b[j++];
      result.b.push_back(0);
    }
    const int64_t piece = std::min(rest_a, rest_b);
    if (rest_a % piece != 0 || rest_b % piece != 0) return std::nullopt;
    result.pieces.push_back(piece);
    ++result.a.back();
    ++result.b.back();
    rest_a /= piece;
    rest_b /= piece;
  }
  return result;
}

}  // namespace lamina
