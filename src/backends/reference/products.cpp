#include "backends/reference/products.h"

#include <algorithm>

namespace lamina::reference {
namespace {

constexpr int64_t kColumns = 256;  // of a block: the results of a tile stay in the first-level cache

// dst[n] += a[0] * b[n] + a[1] * b[columns + n] + ..., in this order. Four terms at a time reduce memory traffic.
void add_row(const double* a, int64_t depth, const double* b, int64_t columns, double* dst, int64_t count) {
  int64_t k = 0;
  for (; k + 4 <= depth; k += 4) {
    const double* row = b + k * columns;
    const double a0 = a[k], a1 = a[k + 1], a2 = a[k + 2], a3 = a[k + 3];
#pragma omp simd
    for (int64_t n = 0; n < count; ++n)
      dst[n] = dst[n] + a0 * row[n] + a1 * row[columns + n] + a2 * row[2 * columns + n] + a3 * row[3 * columns + n];
  }
  for (; k < depth; ++k) {
    const double* row = b + k * columns;
    const double factor = a[k];
#pragma omp simd
    for (int64_t n = 0; n < count; ++n) dst[n] += factor * row[n];
  }
}

}  // namespace

void add_products(const double* const* a, double* const* dst, int rows, int64_t depth, const double* b, int64_t columns) {
  constexpr int64_t kDepth = 16;  // rows of b that are used for the whole tile before more are read
  for (int64_t n = 0; n < columns; n += kColumns)
    for (int64_t k = 0; k < depth; k += kDepth)
      for (int t = 0; t < rows; ++t)
        if (a[t] != nullptr)
          add_row(a[t] + k, std::min(kDepth, depth - k), b + k * columns + n, columns, dst[t] + n,
                  std::min(kColumns, columns - n));
}

}  // namespace lamina::reference
