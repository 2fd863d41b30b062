// Products of integers in groups have the bits of their definition (kernels/integer_rows.h): all types, zero points and
// schedules, packed or not, one to seven threads.
#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "backends/cpu/dispatch/quantized_rows.h"
#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/quantized_weights.h"
#include "backends/cpu/support/described_machines.h"
#include "interface/status.h"
#include "kernels/integer_rows.h"
#include "passes/tiling/quantized_rows.h"

namespace lamina::testing {
namespace {

using kernel::Contraction;
using kernel::MatrixStack;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, s4 = DataType::s4, u4 = DataType::u4, s8 = DataType::s8,
                   u8 = DataType::u8;

struct Case {
  int64_t m = 3, k = 96, n = 70;
  DataType rows = s8, dtype = s4, scales = f32;
  int64_t group = 32, group_columns = 1;
  bool has_zero_points = true, has_zero_points_of_rows = true, has_one_scale = false, has_bias = true, along_k = true;
};

kernel::QuantizedMatrix matrix_of(const Case& c) {
  kernel::QuantizedMatrix matrix;
  const int64_t groups = c.k / c.group;
  matrix.values = {c.k, c.n, c.along_k ? 1 : c.n, c.along_k ? c.k : 1, {}, c.dtype};
  matrix.group_rows = c.group, matrix.group_columns = c.group_columns;
  matrix.scales = {groups, c.n / c.group_columns, 1, groups, {}, c.scales};
  if (c.has_zero_points) matrix.zero_points = MatrixStack{groups, c.n / c.group_columns, 1, groups, {}, c.dtype};
  return matrix;
}

Contraction contraction_of(const Case& c) {
  Contraction contraction;
  kernel::MatmulStack& stack = contraction.matrices;
  stack.m = c.m, stack.k = c.k, stack.n = c.n;
  stack.src = {c.m, c.k, c.k, 1, {}, f32};
  stack.weights = {c.k, c.n, c.n, 1, {}, f32};
  stack.dst = {c.m, c.n, c.n, 1, {}, f32};
  stack.bias = {1, c.n, 0, 1, {}, f32};
  stack.has_bias = c.has_bias;
  return contraction;
}

class IntegerBits : public OnDescribedMachine {
 protected:
  // Over the whole range of the type, if it is an integer.
  std::vector<char> random_elements(DataType dtype, int64_t count) {
    const bool is_signed = is_signed_integer(dtype);
    const double range = is_floating(dtype) ? 0.2 : 1 << bits_of(dtype), low = is_floating(dtype) || is_signed ? -range / 2 : 0;
    std::uniform_real_distribution<double> numbers(low - 0.5, low + range - 0.5);
    std::vector<char> bytes(static_cast<size_t>(bytes_of(dtype, count)));
    for (int64_t i = 0; i < count; ++i) store_from_double(dtype, bytes.data(), i, numbers(random_));
    return bytes;
  }

  void expect_definition(const Case& c, int others = 1) {
    const kernel::QuantizedMatrix matrix = matrix_of(c);
    const Contraction contraction = contraction_of(c);
    SCOPED_TRACE(join(kernel::print(contraction), ", ", name_of(c.rows), " by ", kernel::print(matrix)));
    const int64_t groups = c.k / c.group * (c.n / c.group_columns), scale_stride = c.has_one_scale ? 0 : 1;
    const kernel::IntegerRows rows{.dtype = c.rows,
                                   .row_stride = c.k + 5,
                                   .zero_points = c.rows,
                                   .scale_stride = scale_stride,
                                   .zero_point_stride = scale_stride,
                                   .has_zero_points = c.has_zero_points_of_rows};
    const std::vector<char> src = random_elements(c.rows, c.m * rows.row_stride), of_rows = random_elements(f32, c.m),
                            zero_points_of_rows = random_elements(c.rows, c.m), values = random_elements(c.dtype, c.k * c.n),
                            scales = random_elements(c.scales, groups), zero_points = random_elements(c.dtype, groups),
                            bias = random_elements(f32, c.n);
    const kernel::IntegerRowsMemory rows_memory{src.data(), of_rows.data(), zero_points_of_rows.data()};
    const kernel::QuantizedMemory memory{values.data(), scales.data(), zero_points.data()};
    std::vector<char> expected(static_cast<size_t>(c.m * c.n) * sizeof(float));
    kernel::interpret(contraction, rows, rows_memory, matrix, memory, bias.data(), expected.data());

    const auto all = cpu::legal_product_schedules(contraction, machine_);
    for (const bool is_packed : {false, true}) {
      std::vector<cpu::DequantizedSchedule> tried{cpu::choose_schedule_of_integers(contraction, machine_, 2, is_packed)};
      for (int i = 0; i < others; ++i) tried.push_back(cpu::legal_of_integers(all.sample(random_), contraction));
      for (const cpu::DequantizedSchedule& schedule : tried) {
        const int threads = std::vector<int>{1, 2, 3, 7}[random_() % 4];
        const auto weights = cpu::quantized_weights(matrix, kernel::part_of_group(matrix), machine_, schedule, is_packed);
        const cpu::QuantizedRows source({rows, weights->program().panel, c.m});
        const cpu::ProductRunner runner(contraction, machine_, schedule.product, threads, cpu::product_weights(*weights, &rows),
                                        &source);
        const cpu::Executor executor(cpu::Executor::Kind::workers, threads);
        std::vector<char> packed(weights->packed_bytes() + 64), scratch(runner.scratch_bytes() + 64);
        const auto aligned = [](std::vector<char>& bytes) {
          return bytes.data() + (64 - reinterpret_cast<uintptr_t>(bytes.data()) % 64);
        };
        if (is_packed) weights->pack(memory, aligned(packed), executor);
        std::vector<char> dst(expected.size());
        runner.run(&rows_memory, is_packed ? static_cast<const void*>(aligned(packed)) : &memory,
                   c.has_bias ? bias.data() : nullptr, dst.data(), aligned(scratch), executor);
        EXPECT_TRUE(dst == expected) << describe(schedule) << (is_packed ? ", packed, " : ", ") << threads << " threads";
      }
    }
  }
  const cpu::Machine machine_ = machine();
  std::mt19937_64 random_{1};
};

TEST_P(IntegerBits, AreThoseOfTheDefinitionForEveryTypeAndZeroPoint) {
  for (const DataType rows : {s8, u8}) {
    for (const DataType dtype : {s4, u4, s8, u8}) {
      for (const int zero_points : {0, 1, 2, 3})
        expect_definition({.rows = rows,
                           .dtype = dtype,
                           .scales = zero_points == 1 ? bf16 : f32,
                           .has_zero_points = (zero_points & 1) != 0,
                           .has_zero_points_of_rows = (zero_points & 2) != 0,
                           .has_one_scale = zero_points == 2,
                           .along_k = zero_points != 3});
    }
  }
}

TEST_P(IntegerBits, AreThoseOfTheDefinitionForAnyNumberOfRowsAndColumns) {
  for (int64_t m = 1; m <= 17; ++m) {
    const int64_t n = std::vector<int64_t>{1, 15, 16, 17, 33, 64, 65, 129}[static_cast<size_t>(m) % 8];
    expect_definition({.m = m, .n = n, .dtype = m % 2 == 0 ? s4 : s8, .has_bias = m % 3 == 0});
  }
}

TEST_P(IntegerBits, AreThoseOfTheDefinitionForEveryGroup) {
  for (const int64_t group : {8, 9, 12, 20, 100, 256, 264, 1024}) {
    for (const DataType dtype : {s4, u8}) expect_definition({.k = 3 * group, .n = 20, .dtype = dtype, .group = group});
  }
  expect_definition({.group_columns = 10});
}

INSTANTIATE_TEST_SUITE_P(OnMachines, IntegerBits, ::testing::ValuesIn(described_machines()), name_of_machine);

TEST(PartOfGroup, IsTheGroupOrADivisor) {
  for (const auto& [group, part] : std::vector<std::pair<int64_t, int64_t>>{
           {1, 0}, {7, 0}, {8, 8}, {255, 255}, {256, 256}, {257, 0}, {264, 88}, {1024, 256}, {4104, 216}})
    EXPECT_EQ(part_of_group(group), part) << group;
}

}  // namespace
}  // namespace lamina::testing
