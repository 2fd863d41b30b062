// Short rows whose per-row values are computed for a whole tile at once. They match the interpreter bit for bit: for every
// number of rows in the last tile, every position of a row that needs a second walk, every kind of per-row value and every
// machine.
#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/schedule/tiles.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"
#include "backends/cpu/support/schedules_with.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Reduction;
using kernel::Value;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;

// Per-row values of every kind: read by elements, by other per-row values, by both; the row number; a boolean; a constant.
Kernel many_row_values(const Shape& shape) {
  Rows k("many_row_values", shape);
  const Value scale = k.per_row("scale"), x = k.src("src") * scale;
  const auto moments = k.builder().moments(x);
  const Value rstd = 1.0 / sqrt(moments.variance + max(abs(k.per_row("epsilon")), 1e-5)),
              is_small = less(moments.variance, 1.2);
  const Value y = k.builder().center(x, moments, rstd) + abs(scale) * 0.5;
  k.out(k.builder().select(is_small, y, y * k.row_number()), "dst");
  k.row_out(rstd * k.row_number(), "product");
  k.row_out(k.builder().select(is_small, rstd, scale), "choice");
  k.row_out(is_small, "is_small", DataType::boolean);
  k.row_out(scale, "copy");
  return k.finish();
}

// Two moments and two reductions, one of which depends on the other: the second walk also computes a reduction.
Kernel many_reductions(const Shape& shape) {
  Rows k("many_reductions", shape);
  const Value x = k.src("a"), y = k.src("b"), largest = k.builder().reduce(Reduction::maximum, x);
  const auto of_x = k.builder().moments(x), of_y = k.builder().moments(y);
  const Value product = k.builder().reduce(Reduction::product, abs(y) * 0.5 + 0.7),
              sum = k.builder().reduce(Reduction::sum, exp(x - largest));
  k.out(k.builder().center(x, of_x) * product + k.builder().center(y, of_y, of_x.variance) / sum, "dst");
  k.row_out(largest, "largest");
  k.row_out(of_y.variance, "variance");
  return k.finish();
}

cpu::Schedule in_batches(const Kernel& kernel, const cpu::Machine& machine, int rows) {
  EXPECT_TRUE(cpu::batches_rows(kernel));
  return schedule_with(kernel, machine, [&](const cpu::Schedule& s) { return s.rows_per_tile == rows && !s.transposed; });
}

class BatchedRows : public OnDescribedMachine {
 protected:
  static void expect_bits(Kernel (*make)(const Shape&)) {
    for (const DataType dtype : {f32, bf16, f16, f64}) {
      for (const int64_t size : {96, 461}) {
        for (const int64_t rows : {1, 2, 7, 8, 9, 19}) {
          const Kernel kernel = make({rows, size, dtype});
          const cpu::Schedule schedule = in_batches(kernel, machine(), size == 96 ? 8 : 4);
          expect_interpreter_bits(kernel, 1, machine(), &schedule);
        }
      }
      for (const int64_t rows : {1, 3, 130}) {
        const Kernel kernel = make({rows, 77, dtype, true});
        const cpu::Schedule schedule = in_batches(kernel, machine(), 8);
        expect_interpreter_bits(kernel, 3, machine(), &schedule);
      }
    }
  }
};

TEST_P(BatchedRows, LayerNorm) { expect_bits(layer_norm); }
TEST_P(BatchedRows, ValuesPerRowOfEveryKind) { expect_bits(many_row_values); }
TEST_P(BatchedRows, SeveralReductions) { expect_bits(many_reductions); }
TEST_P(BatchedRows, BackwardThatTakesItsOwnStatistics) { expect_bits(backward); }

// One row has an offset from its first elements that requires a second walk: at each position of a full and of the last tile.
TEST_P(BatchedRows, SecondWalkOfOneRow) {
  constexpr int64_t kRows = 13, kSize = 128, kFirst = 16;
  for (Kernel (*const make)(const Shape&) : {layer_norm, many_row_values, many_reductions, backward}) {
    const Kernel kernel = make({kRows, kSize});
    const cpu::Schedule schedule = in_batches(kernel, machine(), 4);
    const auto is_src = [](const kernel::Arg& arg) { return arg.strides == Dims{kSize, 1}; };
    const auto element_arg =
        static_cast<size_t>(std::find_if(kernel.args.begin(), kernel.args.end(), is_src) - kernel.args.begin());
    for (int64_t far = 0; far < kRows; ++far) {
      Memory memory = memory_for(kernel);
      for (int64_t i = 0; i < kRows * kSize; ++i) {
        const double value = i / kSize == far && i % kSize < kFirst ? 1000 : std::sin(static_cast<double>(i * i % 1013));
        store_from_double(f32, memory[element_arg].data(), i, value);
      }
      expect_interpreter_bits(kernel, 1, machine(), std::move(memory), &schedule);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Machines, BatchedRows, ::testing::ValuesIn(described_machines()), name_of_machine);

TEST(BatchedRowsTwin, NotLongOnesNorReductionsAlone) {
  EXPECT_FALSE(cpu::batches_rows(layer_norm({8, 600})));
  Rows k("reduction", {8, 96});
  const Value x = k.src("src");
  k.out(x / k.builder().reduce(Reduction::sum, x * x), "dst");
  EXPECT_FALSE(cpu::batches_rows(k.finish()));
}

}  // namespace
}  // namespace lamina::testing
