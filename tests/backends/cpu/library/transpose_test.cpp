// Transposes of elements of all widths, with every kind of border.
#include "backends/cpu/dispatch/windows/transpose.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace lamina::testing {
namespace {

struct Form {
  int bits;
  int64_t rows, columns;
};

class Transpose : public ::testing::TestWithParam<Form> {};

constexpr int64_t kGap = 3;  // between rows; its elements must not change
constexpr unsigned char kUntouched = 0xA5;

// Bytes of pseudo-random numbers, so that no two elements of 16 and 32 bits are likely to be equal.
std::vector<unsigned char> some_bytes(int64_t count) {
  std::vector<unsigned char> bytes(static_cast<size_t>(count));
  uint32_t state = 1;
  for (unsigned char& byte : bytes) byte = static_cast<unsigned char>((state = state * 1664525 + 1013904223) >> 24);
  return bytes;
}

TEST_P(Transpose, MovesEachElement) {
  const auto [bits, rows, columns] = GetParam();
  const int64_t bytes = bits / 8, from_stride = columns + kGap, to_stride = rows + kGap;
  const std::vector<unsigned char> from = some_bytes(rows * from_stride * bytes + 1);
  std::vector<unsigned char> to(static_cast<size_t>(columns * to_stride * bytes + 1), kUntouched), expected = to;
  for (int64_t row = 0; row < rows; ++row)
    for (int64_t column = 0; column < columns; ++column)
      std::memcpy(&expected[static_cast<size_t>((column * to_stride + row) * bytes + 1)],
                  &from[static_cast<size_t>((row * from_stride + column) * bytes + 1)], static_cast<size_t>(bytes));
  cpu::transpose(bits, &from[1], from_stride, &to[1], to_stride, rows, columns);  // not aligned
  EXPECT_EQ(to, expected);
}

std::vector<Form> forms() {
  std::vector<Form> all;
  for (const int bits : {8, 16, 32}) {
    const int64_t side = cpu::square_side(bits);
    for (const int64_t rows : {int64_t{1}, side - 1, side, side + 1, 3 * side, int64_t{130}})
      for (const int64_t columns : {int64_t{1}, side - 1, side, side + 1, 3 * side, int64_t{130}})
        all.push_back({bits, rows, columns});
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Forms, Transpose, ::testing::ValuesIn(forms()), [](const auto& test) {
  const Form& form = test.param;
  return "bits_" + std::to_string(form.bits) + "_" + std::to_string(form.rows) + "x" + std::to_string(form.columns);
});

}  // namespace
}  // namespace lamina::testing
