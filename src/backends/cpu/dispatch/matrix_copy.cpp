#include "backends/cpu/dispatch/matrix_copy.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "backends/cpu/dispatch/windows/transpose.h"
#include "backends/cpu/program/cache_sets.h"
#include "backends/cpu/program/product_calls.h"

namespace lamina::cpu {

namespace {

// Rows that are transposed at a time: as many as the first-level cache has lines for, in the sets that the distance of the rows
// leads to, and as its table of pages has entries.
int64_t rows_at_once(int64_t row_bytes) {
  constexpr int64_t kWays = 8, kPages = 64;
  return std::min(kPages, kWays * different_beginnings(row_bytes));
}

// The columns of `from` are contiguous, and so are the rows of `to`.
void transpose_rows(const char* from, int64_t from_row, char* to, int64_t to_column, int64_t rows, int64_t columns,
                    int64_t element_bytes) {
  const int64_t at_once = rows_at_once(from_row);
  for (int64_t row = 0; row < rows; row += at_once)
    transpose(static_cast<int>(8 * element_bytes), from + row * from_row, from_row / element_bytes, to + row * element_bytes,
              to_column / element_bytes, std::min(at_once, rows - row), columns);
}

template <typename Word>
void fill(Word word, char* to, int64_t count) {
  for (int64_t i = 0; i < count; ++i) std::memcpy(to + i * int64_t{sizeof word}, &word, sizeof word);
}

template <typename Word>
void copy_words(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) {
  for (int64_t row = 0; row < rows; ++row) {
    const char* source = from + row * from_steps.row;
    char* target = to + row * to_steps.row;
    if (from_steps.column == 0 && to_steps.column == int64_t{sizeof(Word)}) {
      Word word;
      std::memcpy(&word, source, sizeof word);
      fill(word, target, columns);
      continue;
    }
    for (int64_t column = 0; column < columns; ++column, source += from_steps.column, target += to_steps.column)
      std::memcpy(target, source, sizeof(Word));
  }
}

// Elements of 1, 2, 4 or 8 bytes.
void copy_elements(const char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns,
                   int64_t element_bytes) {
  // Where rows of `from` are closer than its columns (a transposed matrix), each of its cache lines is read once: for all rows.
  if (rows > 1 && from_steps.row < from_steps.column && from_steps.column != element_bytes) {
    std::swap(from_steps.row, from_steps.column);
    std::swap(to_steps.row, to_steps.column);
    std::swap(rows, columns);
  }
  const bool reads_rows = from_steps.column == element_bytes;
  if (reads_rows && to_steps.row == element_bytes && rows > 1 && element_bytes <= 4) {
    transpose_rows(from, from_steps.row, to, to_steps.column, rows, columns, element_bytes);
  } else if (reads_rows && to_steps.column == element_bytes) {
    for (int64_t row = 0; row < rows; ++row)
      std::memcpy(to + row * to_steps.row, from + row * from_steps.row, static_cast<size_t>(columns * element_bytes));
  } else if (element_bytes == sizeof(uint64_t)) {
    copy_words<uint64_t>(from, from_steps, to, to_steps, rows, columns);
  } else if (element_bytes == sizeof(uint32_t)) {
    copy_words<uint32_t>(from, from_steps, to, to_steps, rows, columns);
  } else if (element_bytes == sizeof(uint16_t)) {
    copy_words<uint16_t>(from, from_steps, to, to_steps, rows, columns);
  } else {
    copy_words<uint8_t>(from, from_steps, to, to_steps, rows, columns);
  }
}

}  // namespace

void MatrixCopy::write(ProgramWriter& to) const {
  to.write(from_bytes_);
  to.write(to_bytes_);
  cpu::write(to, convert_);
}

MatrixCopy MatrixCopy::read(ProgramReader& from) {
  const auto from_bytes = from.get<int64_t>(), to_bytes = from.get<int64_t>();
  return {from_bytes, to_bytes, read_code(from)};
}

void ScaledCopy::write(ProgramWriter& to) const {
  to.write(to_bytes_);
  cpu::write(to, scale_);
}

ScaledCopy ScaledCopy::read(ProgramReader& from) {
  const auto to_bytes = from.get<int64_t>();
  return {to_bytes, read_code(from)};
}

void MatrixCopy::operator()(char* from, Steps from_steps, char* to, Steps to_steps, int64_t rows, int64_t columns) const {
  if (convert_.address == nullptr) return copy_elements(from, from_steps, to, to_steps, rows, columns, from_bytes_);
  const auto convert_rows = [&](const char* first, int64_t row_bytes, char* converted, int64_t converted_row_bytes) {
    const auto convert = convert_.as<RowConversionFunction>();
    for (int64_t row = 0; row < rows; ++row) convert(first + row * row_bytes, converted + row * converted_row_bytes, columns);
  };
  if (from_steps.column == from_bytes_ && to_steps.column == to_bytes_) {
    convert_rows(from, from_steps.row, to, to_steps.row);
  } else if (from_bytes_ < to_bytes_) {
    char* const gathered = to + columns * (to_bytes_ - from_bytes_);
    copy_elements(from, from_steps, gathered, {to_steps.row, from_bytes_}, rows, columns, from_bytes_);
    convert_rows(gathered, to_steps.row, to, to_steps.row);
  } else {
    convert_rows(from, from_steps.row, from, from_steps.row);
    copy_elements(from, {from_steps.row, to_bytes_}, to, to_steps, rows, columns, to_bytes_);
  }
}

void ScaledCopy::operator()(char* sums, int64_t sums_row, const float* scales, const char* bias, int64_t bias_row, char* to,
                            Steps to_steps, int64_t rows, int64_t columns) const {
  const auto scale = scale_.as<ScaledRowFunction>();
  for (int64_t row = 0; row < rows; ++row, sums += sums_row, to += to_steps.row) {
    const bool is_direct = to_steps.column == to_bytes_;
    const auto* const added = bias == nullptr ? nullptr : reinterpret_cast<const float*>(bias + row * bias_row);
    scale(reinterpret_cast<const int32_t*>(sums), scales, added, is_direct ? to : sums, columns);
    if (!is_direct) copy_elements(sums, {0, to_bytes_}, to, to_steps, 1, columns, to_bytes_);
  }
}

}  // namespace lamina::cpu
