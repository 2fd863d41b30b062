// Long rows whose last phase goes in strips of columns: the interpreter's bits for every number of rows in the last tile, ends
// of rows within a vector and within a line, rows that begin anywhere in a line of a streamed output, and every instruction
// set.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/code/jit.h"
#include "backends/cpu/interpreter_bits.h"
#include "backends/cpu/kernels_of_rows.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Reduction;
using kernel::Value;

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f64 = DataType::f64;
constexpr cpu::Caches kCaches{int64_t{48} << 10, int64_t{2} << 20};

cpu::Schedule schedule_of(const Kernel& kernel, const cpu::Caches& caches = kCaches) {
  return cpu::choose_schedule(kernel, 512, true, caches);
}

class Strips : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { setenv("LAMINA_MAX_ISA", GetParam(), 1); }
  void TearDown() override { unsetenv("LAMINA_MAX_ISA"); }
};

TEST_P(Strips, BackwardWithColumnSums) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 4093}, Shape{3, 2049}, Shape{4, 4093}, Shape{6, 5120}, Shape{71, 2049}}) {
      const Kernel kernel = backward({shape.rows, shape.size, dtype});
      ASSERT_GT(schedule_of(kernel).strip, 0) << shape.rows << " x " << shape.size;
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads);
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
      expect_interpreter_bits(kernel, 3);
      expect_interpreter_bits(make({dtype == f32 ? 90 : 179, 4093, dtype, true}), 1);
    }
  }
}

// gamma and beta of more than the first-level cache, and shorter rows that would not gain by strips.
TEST_P(Strips, SharedRowsOverflowTheFirstCache) {
  for (const DataType dtype : {f32, bf16, f64}) {
    for (const Shape& shape : {Shape{1, 8192}, Shape{6, 6160}, Shape{131, 6144}}) {
      const Kernel kernel = layer_norm({shape.rows, shape.size, dtype});
      ASSERT_GT(schedule_of(kernel).strip, 0) << shape.rows << " x " << shape.size;
      for (const int threads : {1, 3}) expect_interpreter_bits(kernel, threads);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Isas, Strips, ::testing::Values("avx512", "avx2", "generic"),
                         [](const auto& test) { return test.param; });

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
  EXPECT_TRUE(schedule_of(layer_norm({1024, 1024})).asks_first_cache);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096})).asks_first_cache);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096, bf16})).asks_first_cache);
  EXPECT_TRUE(schedule_of(layer_norm({1024, 4096}), {int64_t{96} << 10, int64_t{2} << 20}).asks_first_cache);
}

TEST(StripsTwin, RowsAreAskedForLateWhereATileFillsMuchOfTheSecondCache) {
  EXPECT_FALSE(schedule_of(layer_norm({1024, 4096})).asks_late);
  EXPECT_TRUE(schedule_of(layer_norm({1024, 32768})).asks_late);
  EXPECT_FALSE(schedule_of(layer_norm({1024, 32768})).asks_first_cache) << "one input";
  EXPECT_TRUE(schedule_of(backward({1024, 16384})).asks_late);
  EXPECT_TRUE(schedule_of(backward({1024, 16384})).asks_first_cache) << "two inputs";
  EXPECT_FALSE(schedule_of(backward({1024, 16384}), {int64_t{48} << 10, int64_t{16} << 20}).asks_late);
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
