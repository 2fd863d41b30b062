// Products with weights of 4 and 8 bits have the bits of the chain over dequantised weights: all types, groups, layouts and
// schedules, packed or not, one to seven threads.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "backends/cpu/library/products/product_runner.h"
#include "backends/cpu/library/products/quantized_weights.h"
#include "backends/cpu/support/described_machines.h"
#include "interface/status.h"
#include "kernels/contraction.h"

namespace lamina::testing {
namespace {

using cpu::DequantizedSchedule;
using kernel::Contraction;
using kernel::MatrixStack;
using kernel::QuantizedMatrix;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, s4 = DataType::s4, u4 = DataType::u4,
                   s8 = DataType::s8, u8 = DataType::u8, s32 = DataType::s32;

struct Case {
  int64_t m = 1, k = 96, n = 70;
  DataType dtype = s4;
  bool along_k = true;
  int64_t gap = 0;  // integers between rows, or columns if these are contiguous
  int64_t group_rows = 32, group_columns = 1;
  DataType scales = f32;
  std::optional<DataType> zero_points = std::nullopt;
  DataType rounds_to = f32;
  bool has_bias = false;
  bool src_along_k = true, dst_along_columns = true;
};

MatrixStack dense(int64_t rows, int64_t columns, bool along_columns, int64_t gap, DataType dtype) {
  return {rows, columns, along_columns ? columns + gap : 1, along_columns ? 1 : rows + gap, {}, dtype};
}

QuantizedMatrix matrix_of(const Case& c) {
  QuantizedMatrix matrix;
  matrix.values = dense(c.k, c.n, !c.along_k, c.gap, c.dtype);
  matrix.group_rows = c.group_rows, matrix.group_columns = c.group_columns;
  matrix.scales = dense(c.k / c.group_rows, c.n / c.group_columns, !c.along_k, 0, c.scales);
  matrix.rounds_to = c.rounds_to;
  if (c.zero_points) {
    matrix.zero_points = matrix.scales;
    matrix.zero_points->dtype = *c.zero_points;
  }
  return matrix;
}

Contraction contraction_of(const Case& c) {
  Contraction contraction;
  kernel::MatmulStack& stack = contraction.matrices;
  stack.m = c.m, stack.k = c.k, stack.n = c.n;
  stack.src = dense(c.m, c.k, c.src_along_k, 1, f32);
  stack.weights = dense(c.k, c.n, true, 0, f32);
  stack.dst = dense(c.m, c.n, c.dst_along_columns, 2, f32);
  stack.bias = MatrixStack{1, c.n, 0, 1, {}, f32};
  stack.has_bias = c.has_bias;
  return contraction;
}

std::vector<char> random_matrix(const MatrixStack& matrix, double low, double high, std::mt19937_64& random) {
  const int64_t count = (matrix.rows - 1) * matrix.row_stride + (matrix.columns - 1) * matrix.column_stride + 1;
  std::vector<char> bytes(static_cast<size_t>(bytes_of(matrix.dtype, count)));
  std::uniform_real_distribution<double> numbers(low, high);
  for (int64_t i = 0; i < count; ++i) store_from_double(matrix.dtype, bytes.data(), i, numbers(random));
  return bytes;
}

double lowest(DataType dtype) { return dtype == s8 ? -128.5 : dtype == s4 ? -8.5 : -0.5; }
double highest(DataType dtype) { return dtype == s8 ? 127.5 : dtype == u8 ? 255.5 : dtype == s4 ? 7.5 : 15.5; }

class AlignedBytes {
 public:
  explicit AlignedBytes(size_t bytes) : bytes_(bytes + 64) {}
  char* data() { return bytes_.data() + (64 - reinterpret_cast<uintptr_t>(bytes_.data()) % 64); }

 private:
  std::vector<char> bytes_;
};

class DequantizedBits : public OnDescribedMachine {
 protected:
  void expect_chain(const Case& c, int others = 2) {
    const QuantizedMatrix matrix = matrix_of(c);
    const Contraction contraction = contraction_of(c);
    SCOPED_TRACE(join(kernel::print(contraction), ", ", kernel::print(matrix), c.along_k ? ", along k" : ""));
    const std::vector<char> src = random_matrix(contraction.matrices.src, -1, 1, random_);
    const std::vector<char> bias = random_matrix(contraction.matrices.bias, -1, 1, random_);
    const std::vector<char> values = random_matrix(matrix.values, lowest(c.dtype), highest(c.dtype), random_);
    const std::vector<char> scales = random_matrix(matrix.scales, -0.1, 0.1, random_);
    const std::vector<char> zero_points =
        matrix.zero_points ? random_matrix(*matrix.zero_points, 0, 9, random_) : std::vector<char>();
    const kernel::QuantizedMemory memory{values.data(), scales.data(), matrix.zero_points ? zero_points.data() : nullptr};
    const std::vector<char> before = random_matrix(contraction.matrices.dst, -1, 1, random_);
    std::vector<char> expected = before;
    kernel::interpret(contraction, src.data(), kernel::dequantized(matrix, memory).data(), bias.data(), expected.data());

    const int64_t run = cpu::run_of(matrix);
    const auto all = cpu::legal_product_schedules(contraction, machine_);
    std::vector<DequantizedSchedule> tried{cpu::choose_dequantized_schedule(contraction, run, machine_, 2)};
    for (int i = 0; i < others; ++i) tried.push_back(cpu::legal(all.sample(random_), i % 2 == 0, contraction, run));
    for (const DequantizedSchedule& schedule : tried) {
      for (const bool is_packed : {false, true}) {
        const int threads = std::vector<int>{1, 2, 3, 7}[random_() % 4];
        const auto made = cpu::quantized_weights(matrix, cpu::run_of(matrix), machine_, schedule, is_packed);
        const cpu::QuantizedWeights& weights = *made;
        const cpu::ProductRunner runner(contraction, machine_, schedule.product, threads,
                                        cpu::product_weights(weights, nullptr));
        const cpu::Executor executor(cpu::Executor::Kind::workers, threads);
        AlignedBytes packed(weights.packed_bytes()), scratch(runner.scratch_bytes());
        if (is_packed) weights.pack(memory, packed.data(), executor);
        std::vector<char> dst = before;
        runner.run(src.data(), is_packed ? static_cast<const void*>(packed.data()) : &memory,
                   c.has_bias ? bias.data() : nullptr, dst.data(), scratch.data(), executor);
        EXPECT_TRUE(dst == expected) << describe(schedule) << (is_packed ? ", packed, " : ", ") << threads << " threads";
      }
    }
  }
  const cpu::Machine machine_ = machine();
  std::mt19937_64 random_{1};
};

TEST_P(DequantizedBits, AreThoseOfTheChainForEveryTypeAndGroup) {
  for (const DataType dtype : {s4, u4, s8, u8}) {
    for (const int64_t group : {1, 2, 3, 8, 32, 96}) {
      for (const bool along_k : {true, false}) {
        for (const int64_t m : {1, 5, 18})
          expect_chain({.m = m, .k = 192, .dtype = dtype, .along_k = along_k, .group_rows = group}, 1);
      }
    }
  }
}

TEST_P(DequantizedBits, AreThoseOfTheChainForAnyNumberOfRowsAndColumns) {
  for (int64_t m = 1; m <= 17; ++m) {
    const int64_t n = std::vector<int64_t>{1, 15, 16, 17, 33, 64, 65, 129}[static_cast<size_t>(m) % 8];
    expect_chain({.m = m, .n = n, .along_k = m % 2 == 0, .has_bias = m % 3 == 0}, 1);
    expect_chain({.m = m, .k = 61, .n = n, .dtype = s8, .along_k = m % 2 == 1, .group_rows = 61, .zero_points = s8}, 1);
  }
}

TEST_P(DequantizedBits, AreThoseOfTheChainWithZeroPointsAndRoundedWeights) {
  for (const DataType dtype : {s4, u4, s8, u8}) {
    for (const DataType zero_points : {u4, s8, s32}) expect_chain({.m = 3, .dtype = dtype, .zero_points = zero_points});
    for (const DataType rounded : {bf16, f16}) {
      for (const int64_t m : {2, 20})
        expect_chain({.m = m, .dtype = dtype, .scales = rounded, .zero_points = dtype, .rounds_to = rounded});
    }
  }
}

TEST_P(DequantizedBits, AreThoseOfTheChainInEveryLayout) {
  for (const bool along_k : {true, false}) {
    for (const int64_t gap : {0, 2, 3}) {
      for (const DataType dtype : {s4, u8}) {
        expect_chain({.m = 2, .k = 256, .n = 150, .dtype = dtype, .along_k = along_k, .gap = gap});
        expect_chain({.m = 21, .k = 64, .n = 63, .dtype = dtype, .along_k = along_k, .gap = gap, .group_columns = 9});
        expect_chain(
            {.m = 4, .dtype = dtype, .along_k = along_k, .gap = gap, .src_along_k = false, .dst_along_columns = false});
      }
    }
  }
}

TEST_P(DequantizedBits, AreThoseOfTheChainWithLongGroups) {
  expect_chain({.k = 4096, .n = 130, .dtype = s8, .group_rows = 4096, .has_bias = true});
  expect_chain({.m = 20, .k = 1024, .n = 40, .group_rows = 512, .group_columns = 40});
  expect_chain({.m = 3, .k = 509, .n = 40, .along_k = false, .group_rows = 509});
}

INSTANTIATE_TEST_SUITE_P(OnMachines, DequantizedBits, ::testing::ValuesIn(described_machines()), name_of_machine);

}  // namespace
}  // namespace lamina::testing
