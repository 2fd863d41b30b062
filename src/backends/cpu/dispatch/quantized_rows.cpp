#include "backends/cpu/dispatch/quantized_rows.h"

#include <cstring>

#include "backends/cpu/dispatch/program_checks.h"
#include "backends/cpu/program/integer_row.h"

namespace lamina::cpu {

namespace {

constexpr uint64_t kEveryByte = 0x0101010101010101;
constexpr uint64_t kEvenBytes = 0x00FF00FF00FF00FF;

uint64_t load_word(const char* from) {
  uint64_t word = 0;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

// Of 8 bytes, those with an even number, then the others: a tile unpacks words of 4 bits in this order.
uint64_t even_bytes_first(uint64_t bytes) {
  const auto packed = [](uint64_t even) {
    even = (even | even >> 8) & 0x0000FFFF0000FFFF;
    return (even | even >> 16) & 0x00000000FFFFFFFF;
  };
  return packed(bytes & kEvenBytes) | packed(bytes >> 8 & kEvenBytes) << 32;
}

// The sum of 8 signed bytes.
int32_t sum_of_bytes(uint64_t bytes) {
  const uint64_t unsigned_bytes = bytes ^ (kEveryByte << 7);  // larger by 128
  const uint64_t pairs = (unsigned_bytes & kEvenBytes) + (unsigned_bytes >> 8 & kEvenBytes);
  constexpr uint64_t kEveryPair = 0x0001000100010001;
  return static_cast<int32_t>(pairs * kEveryPair >> 48) - 8 * 128;
}

}  // namespace

std::unique_ptr<const QuantizedRows> QuantizedRows::read(ProgramReader& from) {
  const auto program = from.get<QuantizedRowsProgram>();
  require(is_byte_integer(program.rows.dtype) && program.panel.run > 0 && program.rows_of_entry >= 0, "the rows of a product");
  return std::make_unique<const QuantizedRows>(program);
}

void QuantizedRows::make_rows(const void* src, int64_t entry, int64_t first_row, int64_t rows, int64_t /*first_k*/,
                              int64_t count, char* to, int64_t to_next_row) const {
  const auto& memory = *static_cast<const kernel::IntegerRowsMemory*>(src);
  const int64_t first = entry * program_.rows_of_entry + first_row;
  for (int64_t row = 0; row < rows; ++row) make_row(memory, first + row, count, to + row * to_next_row);
}

void QuantizedRows::make_row(const kernel::IntegerRowsMemory& memory, int64_t row, int64_t count, char* to) const {
  const kernel::IntegerRows& rows = program_.rows;
  const QuantizedPanel& panel = program_.panel;
  constexpr int64_t kStep = sizeof(uint64_t);
  const uint64_t moved = rows.dtype == DataType::u8 ? kEveryByte << 7 : 0;
  const auto scale = static_cast<float>(load_as_double(rows.scales, memory.scales, row * rows.scale_stride));
  int32_t zero_point = rows.dtype == DataType::u8 ? -128 : 0;
  if (rows.has_zero_points)
    zero_point += static_cast<int32_t>(load_as_double(rows.zero_points, memory.zero_points, row * rows.zero_point_stride));
  std::memcpy(to, &scale, sizeof(scale));
  std::memcpy(to + sizeof(scale), &zero_point, sizeof(zero_point));
  to += kIntegerRowHeader;
  const char* from = static_cast<const char*>(memory.values) + row * rows.row_stride;
  const bool has_nibbles = panel.entries_of_word() == kStep;
  const int64_t filled = panel.words_of_run() * panel.entries_of_word();
  const int32_t factor = panel.has_zero_points ? 1 : middle_of_codes(panel.dtype);
  for (int64_t run = 0; run < count / panel.run; ++run, from += panel.run) {
    int32_t sum = 0;
    for (int64_t at = 0; at < filled; at += kStep) {
      uint64_t bytes = 0;
      const int64_t left = panel.run - at;
      if (left >= kStep)
        bytes = load_word(from + at) ^ moved;
      else
        for (int64_t i = left; i-- > 0;) bytes = bytes << 8 | ((static_cast<uint8_t>(from[at + i]) ^ (moved & 0xFF)) & 0xFF);
      sum += sum_of_bytes(bytes);
      if (has_nibbles) bytes = even_bytes_first(bytes);
      std::memcpy(to + at, &bytes, static_cast<size_t>(std::min(kStep, filled - at)));
    }
    const int32_t correction = factor * (sum - static_cast<int32_t>(panel.run) * zero_point);
    to += filled;
    std::memcpy(to, &correction, sizeof(correction));
    to += sizeof(correction);
  }
}

}  // namespace lamina::cpu
