#include "backends/cpu/dispatch/weights_copy.h"

#include <cstring>

#include "backends/cpu/program/product_calls.h"

namespace lamina::cpu {

namespace {

// Entries of k of some columns, with the distances between them in bytes.
struct Rows {
  const char* from;
  int64_t row, column, entries, columns;
};

// The columns of two successive entries of k, or of one, become pairs. A constant distance between columns makes the compiler
// join vectors.
template <typename Entry, typename Half, typename Made>
void join_rows(const char* first, const char* second, int64_t columns, int64_t column, Half* to, const Made& made) {
  for (int64_t i = 0; i < columns; ++i) {
    Entry a, b;
    std::memcpy(&a, first + i * column, sizeof a);
    std::memcpy(&b, second + i * column, sizeof b);
    to[2 * i] = made(a);
    to[2 * i + 1] = made(b);
  }
}

template <typename Entry, typename Half, typename Made>
void join(const Rows& rows, Half* to, int64_t width, const Made& made) {
  constexpr int64_t kBytes = sizeof(Entry);
  const auto entry = [&](int64_t i) { return rows.from + i * rows.row; };
  int64_t i = 0;
  for (; i + 1 < rows.entries; i += 2, to += 2 * width) {
    if (rows.column == kBytes)
      join_rows<Entry>(entry(i), entry(i + 1), rows.columns, kBytes, to, made);
    else
      join_rows<Entry>(entry(i), entry(i + 1), rows.columns, rows.column, to, made);
  }
  for (int64_t column = 0; i < rows.entries && column < rows.columns; ++column) {
    Entry last;
    std::memcpy(&last, entry(i) + column * rows.column, sizeof last);
    to[2 * column] = made(last);
  }
}

}  // namespace

Steps WeightsCopy::steps() const {
  const int64_t bytes = bytes_of(program_.matrix.dtype, 1);
  return {program_.matrix.row_stride * bytes, program_.matrix.column_stride * bytes};
}

void WeightsCopy::write(ProgramWriter& to) const {
  to.write(program_);
  convert_.write(to);
}

WeightsCopy WeightsCopy::read(ProgramReader& from) {
  auto program = from.get<WeightsCopyProgram>();
  return {std::move(program), MatrixCopy::read(from)};
}

void WeightsCopy::operator()(const CompiledCode& code, const char* from, int64_t columns, int64_t width, int64_t entries,
                             char* to) const {
  const auto [row, column] = steps();
  int64_t copied = 0;
  if (code.address != nullptr && columns == width) {
    copied = entries / program_.entries;
    code.as<PanelCopyFunction>()(from, program_.is_along_k() ? column : row, to, copied);
    if (copied * program_.entries == entries) return;
  }
  const int64_t bytes = element_bytes(program_.to), rest = entries - copied * program_.entries;
  to += copied * width * bytes;
  // The second entry of a last pair of bf16 must not be a NaN, though it is multiplied by 0.
  if (columns < width || program_.multiplies_pairs)
    std::memset(to, 0, static_cast<size_t>((rest + program_.entries - 1) / program_.entries * width * bytes));
  from += copied * program_.entries * row;
  if (program_.entries > 1) return copy_pairs(from, columns, width, rest, to);
  convert_(from, {row, column}, to, {width * bytes, bytes}, rest, columns);
}

void WeightsCopy::copy_pairs(const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const {
  const auto [row, column] = steps();
  const Rows rows{from, row, column, entries, columns};
  const auto less_zero_point = [zero_point = program_.zero_point](int value) {
    return static_cast<int16_t>(value - zero_point);
  };
  if (program_.multiplies_pairs) {
    join<uint16_t>(rows, reinterpret_cast<uint16_t*>(to), width, [](uint16_t entry) { return entry; });
  } else if (is_byte_integer(program_.to)) {
    join<uint8_t>(rows, reinterpret_cast<uint8_t*>(to), width, [](uint8_t entry) { return entry; });
  } else if (program_.matrix.dtype == DataType::s8) {
    join<int8_t>(rows, reinterpret_cast<int16_t*>(to), width, less_zero_point);
  } else {
    join<uint8_t>(rows, reinterpret_cast<int16_t*>(to), width, less_zero_point);
  }
}

}  // namespace lamina::cpu
