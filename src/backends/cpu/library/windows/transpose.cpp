#include "backends/cpu/library/windows/transpose.h"

#include <cstring>

#include "backends/cpu/host/host_transpose.h"
#include "interface/element.h"

namespace lamina::cpu {

namespace {

using Four = float __attribute__((vector_size(16)));

Four loaded(const void* from, int64_t at) {
  Four values;
  std::memcpy(&values, static_cast<const float*>(from) + at, sizeof values);
  return values;
}

void store(void* to, int64_t at, Four values) { std::memcpy(static_cast<float*>(to) + at, &values, sizeof values); }

// Four rows of four columns.
void transpose_block(const void* from, int64_t from_at, int64_t from_stride, void* to, int64_t to_at, int64_t to_stride) {
  const Four a = loaded(from, from_at), b = loaded(from, from_at + from_stride);
  const Four c = loaded(from, from_at + 2 * from_stride), d = loaded(from, from_at + 3 * from_stride);
  const Four ab01 = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab23 = __builtin_shufflevector(a, b, 2, 6, 3, 7);
  const Four cd01 = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd23 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
  store(to, to_at, __builtin_shufflevector(ab01, cd01, 0, 1, 4, 5));
  store(to, to_at + to_stride, __builtin_shufflevector(ab01, cd01, 2, 3, 6, 7));
  store(to, to_at + 2 * to_stride, __builtin_shufflevector(ab23, cd23, 0, 1, 4, 5));
  store(to, to_at + 3 * to_stride, __builtin_shufflevector(ab23, cd23, 2, 3, 6, 7));
}

}  // namespace

void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns) {
  if (host::has_16x16_transpose())
    return host::transpose_16x16_blocks(static_cast<const float*>(from), from_stride, static_cast<float*>(to), to_stride, rows,
                                        columns);
  const int64_t square_rows = rows / 4 * 4, square_columns = columns / 4 * 4;
  for (int64_t column = 0; column < square_columns; column += 4)
    for (int64_t row = 0; row < square_rows; row += 4)
      transpose_block(from, row * from_stride + column, from_stride, to, column * to_stride + row, to_stride);
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = column < square_columns ? square_rows : 0; row < rows; ++row)
      store_element(to, column * to_stride + row, load_element<float>(from, row * from_stride + column));
}

}  // namespace lamina::cpu
