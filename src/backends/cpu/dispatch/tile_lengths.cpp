#include "backends/cpu/dispatch/tile_lengths.h"

#include <algorithm>
#include <cstdlib>

#include "interface/element.h"

namespace lamina::cpu {

namespace {

using Extent = TileLengthsProgram::Extent;

constexpr int64_t kMostSeen = int64_t{1} << 30;

// Whether no element has all bits of `exponent`.
template <typename Word>
bool are_finite(const char* data, std::span<const Extent> dims, Word exponent) {
  const auto [count, stride] = dims.front();
  if (dims.size() > 1) {
    for (int64_t i = 0; i < count; ++i) {
      if (!are_finite(data + i * stride * static_cast<int64_t>(sizeof(Word)), dims.subspan(1), exponent)) return false;
    }
    return true;
  }
  Word found = 0;
  if (stride == 1) {
    for (int64_t i = 0; i < count; ++i) found |= (load_element<Word>(data, i) & exponent) == exponent;
  } else {
    for (int64_t i = 0; i < count; ++i) found |= (load_element<Word>(data, i * stride) & exponent) == exponent;
  }
  return found == 0;
}

bool is_minus_infinity(DataType dtype, const void* memory) {
  switch (dtype) {
    case DataType::f64: return load_element<uint64_t>(memory, 0) == 0xFFF0000000000000;
    case DataType::f32: return load_element<uint32_t>(memory, 0) == 0xFF800000;
    case DataType::bf16: return load_element<uint16_t>(memory, 0) == 0xFF80;
    case DataType::f16: return load_element<uint16_t>(memory, 0) == 0xFC00;
    default: return false;
  }
}

}  // namespace

bool TileLengths::are_finite(const void* values) const {
  const auto* const data = static_cast<const char*>(values);
  switch (program_.value_type) {
    case DataType::f64: return cpu::are_finite<uint64_t>(data, program_.dims, 0x7FF0000000000000);
    case DataType::f32: return cpu::are_finite<uint32_t>(data, program_.dims, 0x7F800000);
    case DataType::bf16: return cpu::are_finite<uint16_t>(data, program_.dims, 0x7F80);
    case DataType::f16: return cpu::are_finite<uint16_t>(data, program_.dims, 0x7C00);
    default: return false;
  }
}

int64_t TileLengths::seen_more(std::span<void* const> args) const {
  int64_t sum = program_.seen_more;
  for (const auto& [input, is_long, sign] : program_.offsets)
    sum += sign * (is_long ? load_element<int64_t>(args[input], 0) : load_element<int32_t>(args[input], 0));
  return sum;
}

TileLengths::Found TileLengths::look(std::span<void* const> args, char* scratch, const Executor& team) const {
  Found found{false, seen_more(args), scratch};
  if (std::abs(found.seen_more) > kMostSeen) return found;  // positions may overflow
  if (!length_of(found.seen_more, 0)) return found;
  const auto& hidden = program_.hidden;
  if (hidden && !is_minus_infinity(hidden->dtype, args[hidden->input])) return found;
  found.may_leave_out = true;
  for_each_tile(program_.count, team, [&](int64_t number, int) {
    int64_t bytes = 0;
    for (size_t loop = 0; loop < program_.row_loop; ++loop)
      if (program_.numbers[loop] > 0) bytes += number / program_.numbers[loop] % program_.loops[loop] * program_.strides[loop];
    scratch[number] = are_finite(static_cast<const char*>(args[program_.values]) + bytes) ? 1 : 0;
  });
  return found;
}

std::optional<size_t> TileLengths::length_of(int64_t seen_more, int64_t block) const {
  const int64_t end = (block + 1) * program_.rows;
  if (end > program_.all_rows) return std::nullopt;  // a smaller tile
  const auto length = std::lower_bound(program_.lengths.begin(), program_.lengths.end(), end - 1 + seen_more);
  if (length == program_.lengths.end()) return std::nullopt;
  return static_cast<size_t>(length - program_.lengths.begin());
}

std::optional<size_t> TileLengths::length_of(const Found& found, std::span<const int64_t> entries) const {
  if (!found.may_leave_out) return std::nullopt;
  int64_t number = 0;
  for (size_t loop = 0; loop < program_.row_loop; ++loop) number += entries[loop] * program_.numbers[loop];
  if (found.are_finite[number] == 0) return std::nullopt;
  return length_of(found.seen_more, entries[program_.row_loop]);
}

}  // namespace lamina::cpu
