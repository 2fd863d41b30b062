// Products by matrix instructions: each tile, every layout of the factors, and the place of every element. Devices
// without such instructions run the program with instructions that are emulated in their language.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/emulated_matrices.h"
#include "backends/gpu/gpu_check.h"
#include "backends/gpu/languages/language.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"

namespace lamina::testing {
namespace {

struct Product {
  int64_t m, n, k;
  bool src_along_k = true, weights_along_columns = true;
  int64_t padding = 0;  // elements after each line of a factor
  DataType dtype = DataType::bf16;
  int64_t segment_terms = 0;  // sums are divided
};

class MatrixProducts : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    device_ = test_device(why);
    if (device_ == nullptr) GTEST_SKIP() << why;
  }

  kernel::MatmulStack stack_of(const Product& p) const {
    kernel::MatmulStack stack{.m = p.m, .n = p.n, .k = p.k};
    const auto matrix = [&](int64_t rows, int64_t columns, bool along_columns) {
      const int64_t line = (along_columns ? columns : rows) + p.padding;
      return kernel::MatrixStack{rows, columns, along_columns ? line : 1, along_columns ? 1 : line, {}, p.dtype};
    };
    stack.src = matrix(p.m, p.k, p.src_along_k);
    stack.weights = matrix(p.k, p.n, p.weights_along_columns);
    stack.dst = {p.m, p.n, p.n, 1, {}, DataType::f32};
    return stack;
  }

  static std::vector<char> random_factor(const Product& p, int64_t rows, int64_t columns, unsigned seed) {
    const int64_t count = std::max<int64_t>(1, (rows + p.padding) * (columns + p.padding));
    std::vector<char> data(static_cast<size_t>(count) * 2);
    std::mt19937 random(seed);
    std::uniform_real_distribution<double> around(-2, 2);
    for (int64_t i = 0; i < count; ++i) store_from_double(p.dtype, data.data(), i, around(random));
    return data;
  }

  std::vector<float> run(const kernel::MatmulStack& stack, const gpu::MatrixTile& tile, int64_t segment_terms,
                         const std::vector<char>& src, const std::vector<char>& weights) {
    const gpu::Language& language = language_with_matrices(*device_);
    gpu::MatmulForm form = gpu::choose_form(stack, device_->limits(), language);
    EXPECT_TRUE(form.matrix_tile.has_value());
    form.matrix_tile = tile, form.segment_terms = segment_terms;
    std::vector<char> dst(static_cast<size_t>(stack.m * stack.n) * 4, static_cast<char>(-1));  // NaN
    const DeviceCopy a(*device_, src), b(*device_, weights), c(*device_, dst);
    launch_program(*device_, emit_matmul(form, language), launches_of(stack, form), scratch_bytes_of(stack, form),
                   {{a.handle, 0}, {b.handle, 0}, {c.handle, 0}}, words_of(stack, form));
    std::vector<float> result(static_cast<size_t>(stack.m * stack.n));
    device_->copy_out(nullptr, result.data(), c.handle, 0, result.size() * 4);
    return result;
  }

  static std::vector<double> expected(const kernel::MatmulStack& stack, const std::vector<char>& src,
                                      const std::vector<char>& weights) {
    std::vector<double> result;
    for (int64_t row = 0; row < stack.m; ++row) {
      for (int64_t column = 0; column < stack.n; ++column) {
        double sum = 0;
        for (int64_t k = 0; k < stack.k; ++k)
          sum += load_as_double(stack.src.dtype, src.data(), row * stack.src.row_stride + k * stack.src.column_stride) *
                 load_as_double(stack.weights.dtype, weights.data(),
                                k * stack.weights.row_stride + column * stack.weights.column_stride);
        result.push_back(sum);
      }
    }
    return result;
  }

  void expect_right(const Product& p) {
    SCOPED_TRACE(join(p.m, " x ", p.n, " x ", p.k, ", ", p.padding, " between lines, ", p.src_along_k ? "" : "src along rows, ",
                      p.weights_along_columns ? "" : "weights along k, ", name_of(p.dtype), ", segments of ", p.segment_terms));
    const kernel::MatmulStack stack = stack_of(p);
    const std::vector<char> src = random_factor(p, p.m, p.k, 1), weights = random_factor(p, p.k, p.n, 2);
    const std::vector<double> want = expected(stack, src, weights);
    std::vector<float> first;
    for (const gpu::MatrixTile& tile : gpu::tuning::kMatrixTiles) {
      if (tile.by_four_warps && !has_instructions_of_four_warps(*device_)) continue;
      SCOPED_TRACE(join("tiles of ", tile.rows, " x ", tile.columns, tile.by_four_warps ? " by four warps" : ""));
      const std::vector<float> got = run(stack, tile, p.segment_terms, src, weights);
      for (size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(got[i], want[i], 4e-6 * static_cast<double>(p.k + 1)) << "element " << i;
      if (first.empty()) first = got;
      EXPECT_EQ(got, first) << "the bits depend on the tile";
    }
  }

  std::shared_ptr<gpu::Device> device_;
};

TEST_F(MatrixProducts, AreRightForEveryLayout) {
  for (const DataType dtype : {DataType::bf16, DataType::f16})
    for (const bool src_along_k : {true, false})
      for (const bool weights_along_columns : {true, false})
        for (const int64_t padding : {0, 3})
          expect_right({.m = 72,
                        .n = 88,
                        .k = 104,
                        .src_along_k = src_along_k,
                        .weights_along_columns = weights_along_columns,
                        .padding = padding,
                        .dtype = dtype});
}

TEST_F(MatrixProducts, TakeTilesThatAreNotFull) {
  for (const int64_t m : {1, 17, 131})
    for (const int64_t n : {1, 34, 137})
      for (const int64_t k : {0, 1, 40, 135}) expect_right({.m = m, .n = n, .k = k});
}

// More steps than there are tiles in local memory.
TEST_F(MatrixProducts, TakeLongSums) {
  expect_right({.m = 20, .n = 40, .k = 1500});
  expect_right({.m = 20, .n = 40, .k = 1504, .src_along_k = false, .weights_along_columns = false});
}

TEST_F(MatrixProducts, DivideSums) {
  for (const bool along : {true, false})
    expect_right({.m = 72, .n = 90, .k = 300, .src_along_k = along, .weights_along_columns = !along, .segment_terms = 128});
  expect_right({.m = 17, .n = 34, .k = 1000, .padding = 1, .segment_terms = 384});
}

// A row's bits do not depend on the other rows, so the segments do not either.
TEST_F(MatrixProducts, DivideLongSumsOfFewColumnsForAnyNumberOfRows) {
  const gpu::Language& language = language_with_matrices(*device_);
  for (const int64_t rows : {1, 64, 5000}) {
    const gpu::MatmulForm form = choose_form(stack_of({.m = rows, .n = 64, .k = 32768}), device_->limits(), language);
    EXPECT_EQ(form.segment_terms, 8192);
  }
  EXPECT_EQ(choose_form(stack_of({.m = 1, .n = 4096, .k = 32768}), device_->limits(), language).segment_terms, 0);
  EXPECT_EQ(choose_form(stack_of({.m = 1, .n = 64, .k = 16000}), device_->limits(), language).segment_terms, 0);
}

TEST(MatrixTiles, AreThoseOfTheLeastTime) {
  const gpu::DeviceLimits small{.compute_units = 132},
      hopper{.compute_units = 132, .local_bytes = 227 << 10, .multiplies_by_four_warps = true};
  const auto tile_of = [](const gpu::DeviceLimits& limits, int64_t m, int64_t n, int64_t products = 1) {
    const gpu::MatrixTile tile = gpu::choose_matrix_tile(m, n, products, limits);
    EXPECT_LE(tile.local_bytes(), limits.local_bytes);
    EXPECT_LE(tile.by_four_warps, limits.multiplies_by_four_warps);
    return std::pair(tile.rows, tile.columns);
  };
  EXPECT_EQ(tile_of(small, 4096, 4096), std::pair(128, 128));
  EXPECT_EQ(tile_of(small, 512, 4096), std::pair(64, 64));
  EXPECT_EQ(tile_of(small, 16, 4096), std::pair(16, 32));
  EXPECT_EQ(tile_of(small, 1, 128256), std::pair(16, 32));
  EXPECT_EQ(tile_of(small, 64, 64, 1000), std::pair(64, 64));
  EXPECT_EQ(tile_of(hopper, 4096, 4096), std::pair(128, 256));
  EXPECT_EQ(tile_of(hopper, 1024, 4096), std::pair(128, 256));
  EXPECT_EQ(tile_of(hopper, 512, 4096), std::pair(128, 128));
  EXPECT_EQ(tile_of(hopper, 16, 4096), std::pair(16, 32));
  EXPECT_EQ(tile_of(hopper, 100352, 64), std::pair(128, 64));
  EXPECT_EQ(tile_of(hopper, 25088, 128), std::pair(256, 128));
  EXPECT_EQ(tile_of(hopper, 1, 128256), std::pair(16, 32));
}

}  // namespace
}  // namespace lamina::testing
