// Long rows whose last phase goes in strips of columns: the interpreter's bits for every number of rows in the last tile, ends
// of rows within a vector and within a line, rows that begin anywhere in a line of a streamed output, and every machine.
#include <gtest/gtest.h>

#include "backends/cpu/described_machines.h"
#include "backends/cpu/interpreter_bits.h"
#include "backends/cpu/kernels_of_rows.h"
#include "backends/cpu/schedule/schedule.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Reduction;
using kernel::Value;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;
cpu::Schedule schedule_of(const Kernel& kernel, const cpu::Caches& caches = xeon().machine.caches) {
  cpu::Machine machine = xeon().machine;
  machine.caches = caches;
  return cpu::choose_schedule(kernel, machine, true);
}

// With the caches of the Xeon all kernels here take strips, with those of the others some.
std::vector<DescribedMachine> machines() {
  std::vector<DescribedMachine> all = described_machines();
  all.push_back({"xeon_with_avx2", cpu::capped(xeon().machine, cpu::Isa::avx2)});
  return all;
}

class Strips : public OnDescribedMachine {};

TEST_P(Strips, BackwardWithColumnSums) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 4093}, Shape{3, 2049}, Shape{4, 4093}, Shape{6, 5120}, Shape{71, 2049}}) {
      const Kernel kernel = backward({shape.rows, shape.size, dtype});
      ASSERT_GT(schedule_of(kernel).strip, 0) << shape.rows << " x " << shape.size;
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine());
    }
  }
}

// At least 4 MiB of output.
TEST_P(Strips, RowsThatBeginAnywhereInALine) {
  for (const DataType dtype : {f32, bf16}) {
    for (Kernel (*const make)(const Shape&) : {layer_norm, backward}) {
      const Kernel kernel = make({dtype == f32 ? 258 : 514, 4093, dtype});
      const bool is_stream = dtype == f32 && make != backward;  // realigned_test.cpp
      ASSERT_NE(schedule_of(kernel).follows_lines, is_stream);
      ASSERT_NE(schedule_of(kernel).strip > 0, is_stream);
      expect_interpreter_bits(kernel, 3, machine());
      expect_interpreter_bits(make({dtype == f32 ? 90 : 179, 4093, dtype, true}), 1, machine());
    }
  }
}

// gamma and beta of more than the first-level cache, and shorter rows that would not gain by strips.
TEST_P(Strips, SharedRowsOverflowTheFirstCache) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 8192}, Shape{6, 6160}, Shape{131, 6144}}) {
      const Kernel kernel = layer_norm({shape.rows, shape.size, dtype});
      ASSERT_GT(schedule_of(kernel).strip, 0) << shape.rows << " x " << shape.size;
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads, machine());
    }
  }
}

// A row without sums is walked over the range that the code is called with, once: in strips each would walk all of it again,
// and multiply what it had multiplied.
TEST_P(Strips, NotForRowsThatSumNothing) {
  const Shape shape{8, 16384, bf16};
  Rows k("scaled", shape);
  const Value src = k.src("src"), gamma = k.weight("gamma");
  k.out(src * gamma, "dst");
  const Kernel kernel = k.finish();
  EXPECT_EQ(schedule_of(kernel).strip, 0);
  const Memory memory = memory_for(kernel);
  Memory apart = memory, in_place = memory;
  const cpu::KernelRunner runner(kernel, machine());
  runner.run(std::vector<void*>{apart[0].data(), apart[1].data(), apart[2].data()}, nullptr, cpu::Executor(1));
  runner.run(std::vector<void*>{in_place[0].data(), in_place[1].data(), in_place[0].data()}, nullptr, cpu::Executor(1));
  const auto want = values(kernel, 2, apart[2]), got = values(kernel, 2, in_place[0]);
  for (size_t i = 0; i < want.size(); ++i) ASSERT_TRUE(want[i] == got[i] || (std::isnan(want[i]) && std::isnan(got[i]))) << i;
}

INSTANTIATE_TEST_SUITE_P(Machines, Strips, ::testing::ValuesIn(machines()), name_of_machine);

TEST(StripsTwin, NotWhereTheyWouldNotPay) {
  EXPECT_EQ(schedule_of(backward({64, 2048})).strip, 0) << "all fits the first-level cache";
  EXPECT_GT(schedule_of(backward({64, 2048, f64})).strip, 0);
  EXPECT_EQ(schedule_of(layer_norm({1024, 4096})).strip, 0)
      << "rows begin with a line, gamma and beta fit the first-level cache";
  EXPECT_EQ(schedule_of(backward({64, 65536})).strip, 0) << "two rows do not fit the second-level cache";
  EXPECT_EQ(schedule_of(backward({64, 65536})).rows_per_tile, 1);
  EXPECT_GT(schedule_of(backward({64, 65536}), {int64_t{48} << 10, int64_t{8} << 20}).strip, 0);
  Rows k("softmax_with_sums", {64, 4096});
  const Value x = k.src("src"), power = exp(x - k.builder().reduce(Reduction::maximum, x));
  k.column(power / k.builder().reduce(Reduction::sum, power), "sums");
  EXPECT_EQ(schedule_of(k.finish()).strip, 0) << "a function's values are kept";
}

TEST(StripsTwin, TheNextTileWaitsWhereThereIsRoom) {
  EXPECT_TRUE(schedule_of(layer_norm({1024, 1024})).prefetches_to_first);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096})).prefetches_to_first);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096, bf16})).prefetches_to_first);
  EXPECT_TRUE(schedule_of(layer_norm({1024, 4096}), {int64_t{96} << 10, int64_t{2} << 20}).prefetches_to_first);
}

TEST(StripsTwin, RowsArePrefetchedLateWhereATileFillsMuchOfTheSecondCache) {
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096})).prefetches_late);
  EXPECT_TRUE(schedule_of(layer_norm({1024, 32768})).prefetches_late);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 32768})).prefetches_to_first) << "one input";
  EXPECT_TRUE(schedule_of(backward({1024, 16384})).prefetches_late);
  EXPECT_TRUE(schedule_of(backward({1024, 16384})).prefetches_to_first) << "two inputs";
  EXPECT_FALSE(schedule_of(backward({1024, 16384}), {int64_t{48} << 10, int64_t{16} << 20}).prefetches_late);
}

TEST(StripsTwin, ConversionsAreKeptWhereTheFirstCacheHasRoom) {
  EXPECT_TRUE(schedule_of(layer_norm({1024, 2048, bf16})).keeps_conversions);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096, bf16})).keeps_conversions);
  EXPECT_TRUE(schedule_of(layer_norm({1024, 4096, bf16}), {int64_t{64} << 10, int64_t{2} << 20}).keeps_conversions);
}

TEST(StripsTwin, ColumnSumsOfShortRowsAreTakenInPairs) {
  EXPECT_GE(schedule_of(backward({16384, 256})).rows_per_tile, 2);
  EXPECT_EQ(schedule_of(backward({16384, 1024})).rows_per_tile, 1) << "one row streams better than two";
  EXPECT_EQ(schedule_of(backward({16384, 257})).rows_per_tile, 1) << "each row's walk begins at another element";
  EXPECT_GE(schedule_of(backward({32768, 257, bf16})).rows_per_tile, 2);
  EXPECT_EQ(schedule_of(backward({1024, 16384})).rows_per_tile, 2) << "an eighth of the second-level cache";
}

}  // namespace
}  // namespace lamina::testing
