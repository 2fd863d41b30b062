#include "backends/cpu/dispatch/windows/transpose.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/host/host_transpose.h"
#include "interface/status.h"

namespace lamina::cpu {

namespace {

template <typename Element>
struct Matrix {
  Element* at;
  int64_t stride;  // of rows
};

// A square whose rows are registers of 128 bits.
template <typename Element>
class Square {
 public:
  static constexpr int kSide = square_side(8 * sizeof(Element));

  explicit Square(Matrix<const Element> from) {
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) std::memcpy(&rows_[i], from.at + i * from.stride, sizeof rows_[i]);
  }

  void store(Matrix<Element> to) const {
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) std::memcpy(to.at + i * to.stride, &rows_[i], sizeof rows_[i]);
  }

  // Each step rotates the bits of an element's number, row then column, by one: after as many steps as a column has bits, rows
  // and columns have changed places.
  void transpose() {
#pragma GCC unroll 4
    for (int step = 1; step < kSide; step *= 2) interleave(std::make_integer_sequence<int, kSide>());
  }

 private:
  using Row [[gnu::vector_size(16)]] = Element;

  // Row i and row i + kSide / 2 become rows 2 i and 2 i + 1.
  template <int... lane>
  void interleave(std::integer_sequence<int, lane...>) {
    constexpr int kHalf = kSide / 2;
    Row next[kSide];
#pragma GCC unroll 8
    for (int i = 0; i < kHalf; ++i) {
      const Row a = rows_[i], b = rows_[i + kHalf];
      next[2 * i] = __builtin_shufflevector(a, b, (lane % 2 * kSide + lane / 2)...);
      next[2 * i + 1] = __builtin_shufflevector(a, b, (lane % 2 * kSide + lane / 2 + kHalf)...);
    }
#pragma GCC unroll 16
    for (int i = 0; i < kSide; ++i) rows_[i] = next[i];
  }

  Row rows_[kSide];
};

template <typename Element>
void transpose_one_by_one(Matrix<const Element> from, Matrix<Element> to, int64_t rows, int64_t columns) {
  for (int64_t column = 0; column < columns; ++column)
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(to.at + column * to.stride + row, from.at + row * from.stride + column, sizeof(Element));
}

// The last squares of rows and columns end where the matrix ends, and so may overlap with the squares before.
template <typename Element>
void transpose_matrix(Matrix<const Element> from, Matrix<Element> to, int64_t rows, int64_t columns) {
  constexpr int64_t kSide = Square<Element>::kSide;
  if (rows < kSide || columns < kSide) return transpose_one_by_one(from, to, rows, columns);
  for (int64_t first_column = 0; first_column < columns; first_column += kSide) {
    const int64_t column = std::min(first_column, columns - kSide);
    for (int64_t first_row = 0; first_row < rows; first_row += kSide) {
      const int64_t row = std::min(first_row, rows - kSide);
      Square<Element> square({from.at + row * from.stride + column, from.stride});
      square.transpose();
      square.store({to.at + column * to.stride + row, to.stride});
    }
  }
}

template <typename Element>
void transpose_elements(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns) {
  transpose_matrix<Element>({static_cast<const Element*>(from), from_stride}, {static_cast<Element*>(to), to_stride}, rows,
                            columns);
}

}  // namespace

void transpose(const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns) {
  if (host::has_16x16_transpose())
    return host::transpose_16x16_blocks(static_cast<const float*>(from), from_stride, static_cast<float*>(to), to_stride, rows,
                                        columns);
  transpose_elements<uint32_t>(from, from_stride, to, to_stride, rows, columns);
}

void transpose(int bits, const void* from, int64_t from_stride, void* to, int64_t to_stride, int64_t rows, int64_t columns) {
  switch (bits) {
    case 8: return transpose_elements<uint8_t>(from, from_stride, to, to_stride, rows, columns);
    case 16: return transpose_elements<uint16_t>(from, from_stride, to, to_stride, rows, columns);
    case 32: return transpose(from, from_stride, to, to_stride, rows, columns);
    default: LAMINA_CHECK(false, "elements of 8, 16 or 32 bits are transposed");
  }
}

}  // namespace lamina::cpu
