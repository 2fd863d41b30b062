#include "backends/cpu/dispatch/weights_copy.h"

#include <cstring>

#include "backends/cpu/program/product_calls.h"

namespace lamina::cpu {

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

// One by one.
void WeightsCopy::copy_pairs(const char* from, int64_t columns, int64_t width, int64_t entries, char* to) const {
  const auto [row, to_next_column] = steps();
  for (int64_t i = 0; i < entries; ++i) {
    for (int64_t column = 0; column < columns; ++column) {
      const char* const entry = from + i * row + column * to_next_column;
      const int64_t place = (i / program_.entries * width + column) * program_.entries + i % program_.entries;
      if (program_.multiplies_pairs) {
        std::memcpy(to + place * int64_t{sizeof(uint16_t)}, entry, sizeof(uint16_t));
      } else if (is_byte_integer(program_.to)) {
        to[place] = *entry;
      } else {
        const int value = program_.matrix.dtype == DataType::s8 ? static_cast<int8_t>(*entry) : static_cast<uint8_t>(*entry);
        const auto half = static_cast<int16_t>(value - program_.zero_point);
        std::memcpy(to + place * int64_t{sizeof(half)}, &half, sizeof(half));
      }
    }
  }
}

}  // namespace lamina::cpu
