// Few long rows whose blocks are divided among threads. They match the interpreter bit for bit, for rows that run the phases in
// one group or in several, for groups that end with a block of column sums, and on every machine.
#include <gtest/gtest.h>

#include "backends/cpu/schedule/legal_schedules.h"
#include "backends/cpu/schedule/sharing.h"
#include "backends/cpu/support/described_machines.h"
#include "backends/cpu/support/interpreter_bits.h"
#include "backends/cpu/support/kernels_of_rows.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;

class SplitRows : public OnDescribedMachine {
 protected:
  static void expect_bits(const Kernel& kernel, int threads) {
    const cpu::Schedule split = cpu::split_schedule(cpu::choose_schedule(kernel, machine(), true), kernel, machine());
    ASSERT_TRUE(cpu::legal_schedules(kernel, machine()).contains(split)) << cpu::describe(split);
    expect_interpreter_bits(kernel, threads, machine(), &split);
  }
};

TEST_P(SplitRows, LayerNorm) {
  for (const DataType dtype : {f32, bf16}) {
    for (const Shape& shape : {Shape{1, 16384}, Shape{1, 100003}, Shape{5, 20000}, Shape{2, 400000}})
      expect_bits(layer_norm({shape.rows, shape.size, dtype}), 3);
  }
}

TEST_P(SplitRows, Backward) {
  for (const DataType dtype : {f32, bf16}) {
    for (const Shape& shape : {Shape{1, 100003}, Shape{5, 20000}, Shape{3, 400000}, Shape{70, 16390}})
      expect_bits(backward({shape.rows, shape.size, dtype}), 3);
  }
}

// Strips for four rows of a tile, partial tiles, and a second block of column sums; rows of whole lines, and rows that share
// lines.
TEST_P(SplitRows, InStrips) {
  for (const Shape& shape : {Shape{70, 20480}, Shape{67, 20481}}) {
    for (const int threads : {2, 5}) expect_bits(backward(shape), threads);
  }
}

// Rows too short to divide their reductions: one block of rows and several, with column counts that the threads do not divide.
TEST_P(SplitRows, ReducedWhole) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape :
         {Shape{64, 2048, dtype}, Shape{3, 2500, dtype}, Shape{61, 4097, dtype}, Shape{150, 2113, dtype}}) {
      const Kernel kernel = backward(shape);
      EXPECT_TRUE(cpu::reduces_whole_rows(kernel));
      for (const int threads : {2, 5, 8}) expect_bits(kernel, threads);
    }
  }
  EXPECT_FALSE(cpu::reduces_whole_rows(backward({64, 16384}))) << "parts of its sums are blocks enough";
  EXPECT_FALSE(cpu::reduces_whole_rows(layer_norm({1, 4096}))) << "no sums of columns";
}

// No two rows of this length fit into a typical second-level cache.
TEST_P(SplitRows, OverflowTheCache) { expect_bits(backward({128, 32768, f64}), 2); }

INSTANTIATE_TEST_SUITE_P(Machines, SplitRows, ::testing::ValuesIn(described_machines()), name_of_machine);

// The split must gain more than the waits between threads cost, and each thread needs a part of the row.
TEST(SplitRowsOrNot, WhatIsWaitedForDecides) {
  cpu::Machine machine = epyc().machine;
  const auto gains = [&](const Kernel& kernel, int threads) {
    return cpu::gains_by_split(cpu::choose_schedule(kernel, machine, true), kernel, machine, threads);
  };
  EXPECT_TRUE(gains(layer_norm({1, 1000000}), 2));
  EXPECT_TRUE(gains(layer_norm({5, 200000}), 8));
  EXPECT_TRUE(gains(backward({64, 8192}), 2)) << "one block of rows";
  EXPECT_FALSE(gains(backward({37, 1021}), 2)) << "each row's lines are written by both";
  EXPECT_FALSE(gains(layer_norm({1, 1000000}), 1));
  EXPECT_FALSE(gains(layer_norm({1024, 16384}), 2)) << "rows enough for both";
  EXPECT_FALSE(gains(layer_norm({1, 4096}), 2)) << "one block of elements";
  machine.costs.wait = 1e9;
  EXPECT_FALSE(gains(layer_norm({1, 1000000}), 2));
}

}  // namespace
}  // namespace lamina::testing
