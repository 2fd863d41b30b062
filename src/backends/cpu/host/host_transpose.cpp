#include "backends/cpu/host/host_transpose.h"

#if defined(__x86_64__)

#include <immintrin.h>

#include <algorithm>

namespace lamina::cpu::host {

namespace {

constexpr int kBlockRows = 16;
using Sixteen = float __attribute__((vector_size(64)));

// Quarters 0 and 2, or 1 and 3, of two registers.
#define LAMINA_EVEN_QUARTERS(x, y) __builtin_shufflevector(x, y, 0, 1, 2, 3, 8, 9, 10, 11, 16, 17, 18, 19, 24, 25, 26, 27)
#define LAMINA_ODD_QUARTERS(x, y) __builtin_shufflevector(x, y, 4, 5, 6, 7, 12, 13, 14, 15, 20, 21, 22, 23, 28, 29, 30, 31)

// Transposes four rows: quarter k of to[j] is their column 4 k + j.
[[gnu::target("avx512f")]] inline void transpose_4_rows(const Sixteen* from, Sixteen* to) {
  const Sixteen &a = from[0], &b = from[1], &c = from[2], &d = from[3];
  const Sixteen ab_low = __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const Sixteen ab_high = __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  const Sixteen cd_low = __builtin_shufflevector(c, d, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29);
  const Sixteen cd_high = __builtin_shufflevector(c, d, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31);
  to[0] = __builtin_shufflevector(ab_low, cd_low, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  to[1] = __builtin_shufflevector(ab_low, cd_low, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
  to[2] = __builtin_shufflevector(ab_high, cd_high, 0, 1, 16, 17, 4, 5, 20, 21, 8, 9, 24, 25, 12, 13, 28, 29);
  to[3] = __builtin_shufflevector(ab_high, cd_high, 2, 3, 18, 19, 6, 7, 22, 23, 10, 11, 26, 27, 14, 15, 30, 31);
}

// Up to 16 rows with up to 16 columns.
[[gnu::target("avx512f")]] void transpose_16x16_block(const float* from, int64_t from_stride, float* to, int64_t to_stride,
                                                      int64_t rows, int64_t columns) {
  const auto live_columns = static_cast<__mmask16>((1U << columns) - 1), live_rows = static_cast<__mmask16>((1U << rows) - 1);
  Sixteen row[kBlockRows], quarters[kBlockRows];
#pragma GCC unroll 16
  for (int i = 0; i < kBlockRows; ++i)
    row[i] = i < rows ? _mm512_maskz_loadu_ps(live_columns, from + i * from_stride) : Sixteen{};
#pragma GCC unroll 4
  for (int i = 0; i < kBlockRows; i += 4) transpose_4_rows(row + i, quarters + i);
#pragma GCC unroll 4
  for (int j = 0; j < 4; ++j) {
    const Sixteen even_first = LAMINA_EVEN_QUARTERS(quarters[j], quarters[4 + j]);
    const Sixteen odd_first = LAMINA_ODD_QUARTERS(quarters[j], quarters[4 + j]);
    const Sixteen even_last = LAMINA_EVEN_QUARTERS(quarters[8 + j], quarters[12 + j]);
    const Sixteen odd_last = LAMINA_ODD_QUARTERS(quarters[8 + j], quarters[12 + j]);
    row[j] = LAMINA_EVEN_QUARTERS(even_first, even_last);
    row[4 + j] = LAMINA_EVEN_QUARTERS(odd_first, odd_last);
    row[8 + j] = LAMINA_ODD_QUARTERS(even_first, even_last);
    row[12 + j] = LAMINA_ODD_QUARTERS(odd_first, odd_last);
  }
#pragma GCC unroll 16
  for (int i = 0; i < kBlockRows; ++i)
    if (i < columns) _mm512_mask_storeu_ps(to + i * to_stride, live_rows, row[i]);
}

#undef LAMINA_EVEN_QUARTERS
#undef LAMINA_ODD_QUARTERS

}  // namespace

bool has_16x16_transpose() {
  static const bool has = __builtin_cpu_supports("avx512f");
  return has;
}

void transpose_16x16_blocks(const float* from, int64_t from_stride, float* to, int64_t to_stride, int64_t rows,
                            int64_t columns) {
  for (int64_t column = 0; column < columns; column += kBlockRows)
    for (int64_t row = 0; row < rows; row += kBlockRows)
      transpose_16x16_block(from + row * from_stride + column, from_stride, to + column * to_stride + row, to_stride,
                            std::min<int64_t>(kBlockRows, rows - row), std::min<int64_t>(kBlockRows, columns - column));
}

}  // namespace lamina::cpu::host

#else

#include "interface/status.h"

namespace lamina::cpu::host {

bool has_16x16_transpose() { return false; }

void transpose_16x16_blocks(const float*, int64_t, float*, int64_t, int64_t, int64_t) {
  LAMINA_CHECK(false, "this machine has no such registers");
}

}  // namespace lamina::cpu::host

#endif
