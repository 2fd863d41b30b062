// The largest and the smallest element of a row. A NaN at any position makes the result NaN; of two zeros, the later one
// determines the sign; a NaN in one row does not affect the next row. Each machine gives the interpreter's bits.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/scheduled_kernels.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;

// Row r has a NaN at position r; rows with a larger number have none.
double nan_in_turn(int64_t row, int64_t i, double usual) { return i == row ? NAN : usual; }
double infinities(int64_t row, int64_t i, double usual) {
  return i % 5 == row % 5 ? (row % 2 == 0 ? INFINITY : -INFINITY) : usual;
}
double zeros(int64_t row, int64_t i, double) { return (i * 7 + row) % 3 == 0 ? -0.0 : 0.0; }

class Extremes : public OnDescribedMachine {
 protected:
  static void expect_bits(double (*value_at)(int64_t row, int64_t i, double usual)) {
    for (const DataType dtype : {f32, bf16, f64}) {
      for (const int64_t size : {1, 3, 16, 61, 128, 333, 5003}) {
        const int64_t rows = size > 1024 ? 3 : size + 2;
        const kernel::Kernel kernel = extremes({rows, size, dtype});
        Memory memory = memory_for(kernel);
        for (int64_t at = 0; at < rows * size; ++at) {
          const int64_t row = at / size, i = at % size;
          store_from_double(dtype, memory[0].data(), at,
                            value_at(size > 1024 ? 2500 * row : row, i, std::cos(1.7 * static_cast<double>(at))));
        }
        SCOPED_TRACE(join(name_of(dtype), " ", rows, "x", size));
        expect_interpreter_bits(kernel, 2, machine(), memory);
      }
    }
  }
};

TEST_P(Extremes, OfRowsWithANanAtEachPlace) { expect_bits(nan_in_turn); }
TEST_P(Extremes, OfInfinities) { expect_bits(infinities); }
TEST_P(Extremes, OfZerosOfBothSigns) { expect_bits(zeros); }

INSTANTIATE_TEST_SUITE_P(Machines, Extremes, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
