// Sums of products along rows: the inner loop of MatMul and of the convolutions.
#pragma once

#include <cstdint>

namespace lamina::reference {

// result rows that are computed together, so that a row of b is read once for all of them
inline constexpr int kTileRows = 8;

// dst[t][n] += sum over k of a[t][k] * b[k][n] for each of `rows` <= kTileRows rows, with k ascending. Rows whose `a` is null
// do not change. b is dense, depth x columns.
void add_products(const double* const* a, double* const* dst, int rows, int64_t depth, const double* b, int64_t columns);

}  // namespace lamina::reference
