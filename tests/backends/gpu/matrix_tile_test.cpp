// Products by matrix instructions: each tile, every layout of the factors, and the place of every element. Devices
// without such instructions run the program with instructions that are emulated in their language.
#include <gtest/gtest.h>

#include <array>
#include <random>
#include <vector>

#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/gpu_check.h"
#include "backends/gpu/languages/language.h"
#include "backends/gpu/schedule/tuning.h"
#include "interface/data_type.h"

namespace lamina::testing {
namespace {

// A warp exchanges its registers in local memory. A sum is one chain of fused multiply-adds.
constexpr const char* kEmulation = R"(
#undef LM_UNROLL
#define LM_UNROLL
#define LM_MATRIX_EXCHANGE(threads) local const lm_u16* local lm_lines[threads]; local lm_u32 lm_left[(threads) * 4], lm_right[(threads) * 2]
#define lm_load_matrices(to, line) lm_load_lines(to, line, lm_lines, 0)
#define lm_load_matrices_transposed(to, line) lm_load_lines(to, line, lm_lines, 1)
#define lm_multiply_bf16(sum, left, right) lm_multiply(sum, left, right, lm_left, lm_right, 1)
#define lm_multiply_f16(sum, left, right) lm_multiply(sum, left, right, lm_left, lm_right, 0)
#define LM_WAIT_FOR_COPIES(pending)
LM_FN void lm_end_copies(void) {}
LM_FN void lm_copy_chunk(local lm_u16* to, global const lm_u16* from, int count) {
  for (int e = 0; e < 8; ++e) to[e] = e < count ? from[e] : (lm_u16)0;
}
LM_FN void lm_load_lines(lm_u32* to, local const lm_u16* line, local const lm_u16* local* lines, int transposed) {
  const int lane = LM_THREAD % 32, warp = LM_THREAD - lane;
  LM_BARRIER;
  lines[LM_THREAD] = line;
  LM_BARRIER;
  for (int i = 0; i < 4; ++i) {
    local const lm_u16* local* const matrix = lines + warp + i * 8;
    const int pair = lane % 4 * 2, other = lane / 4;
    const lm_u16 low = transposed ? matrix[pair][other] : matrix[other][pair];
    const lm_u16 high = transposed ? matrix[pair + 1][other] : matrix[other][pair + 1];
    to[i] = low | (lm_u32)high << 16;
  }
}
LM_FN lm_f32 lm_half(lm_u32 pair, int high, int is_bf16) {
  const lm_u16 code = (lm_u16)(high ? pair >> 16 : pair);
  return is_bf16 ? lm_f32_from_bf16(code) : lm_f32_from_f16(code);
}
LM_FN void lm_multiply(lm_f32* sum, const lm_u32* left, const lm_u32* right, local lm_u32* lefts, local lm_u32* rights, int is_bf16) {
  const int lane = LM_THREAD % 32, warp = LM_THREAD - lane;
  LM_BARRIER;
  for (int i = 0; i < 4; ++i) lefts[LM_THREAD * 4 + i] = left[i];
  for (int i = 0; i < 2; ++i) rights[LM_THREAD * 2 + i] = right[i];
  LM_BARRIER;
  for (int e = 0; e < 4; ++e) {
    const int row = lane / 4 + e / 2 * 8, column = lane % 4 * 2 + e % 2;
    for (int k = 0; k < 16; ++k) {
      const lm_u32 l = lefts[(warp + row % 8 * 4 + k % 8 / 2) * 4 + row / 8 + k / 8 * 2];
      const lm_u32 r = rights[(warp + column * 4 + k % 8 / 2) * 2 + k / 8];
      sum[e] = lm_fma_f32(lm_half(l, k % 2, is_bf16), lm_half(r, k % 2, is_bf16), sum[e]);
    }
  }
}
)";

const gpu::Language& language_with_matrices(const gpu::Device& device) {
  static const gpu::Language emulated = [] {
    gpu::Language language = gpu::languages::opencl;
    language.matrix_instructions = kEmulation;
    return language;
  }();
  return *device.language().matrix_instructions != '\0' ? device.language() : emulated;
}

struct Memory {
  gpu::Device& device;
  void* handle;
  Memory(gpu::Device& owner, const std::vector<char>& host) : device(owner), handle(owner.allocate(host.size())) {
    owner.copy_in(nullptr, handle, 0, host.data(), host.size());
  }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;
  ~Memory() { device.release(handle); }
};

struct Product {
  int64_t m, n, k;
  bool src_along_k = true, weights_along_columns = true;
  int64_t padding = 0;  // elements after each line of a factor
  DataType dtype = DataType::bf16;
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

  std::vector<float> run(const kernel::MatmulStack& stack, const gpu::MatrixTile& tile, const std::vector<char>& src,
                         const std::vector<char>& weights) {
    const gpu::Language& language = language_with_matrices(*device_);
    gpu::MatmulForm form = gpu::choose_form(stack, device_->limits(), language);
    EXPECT_TRUE(form.matrix_tile.has_value());
    form.matrix_tile = tile;
    std::vector<char> dst(static_cast<size_t>(stack.m * stack.n) * 4, static_cast<char>(-1));  // NaN
    const Memory a(*device_, src), b(*device_, weights), c(*device_, dst);
    const auto module = device_->load(emit_matmul(form, language)).module;
    const std::array<gpu::BufferView, 3> views = {{{a.handle, 0}, {b.handle, 0}, {c.handle, 0}}};
    const int64_t tiles = ((stack.m + tile.rows - 1) / tile.rows) * ((stack.n + tile.columns - 1) / tile.columns);
    module->launch(nullptr, 0, tiles, tile.group_size(), views, gpu::words_of(stack));
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
                      p.weights_along_columns ? "" : "weights along k, ", name_of(p.dtype)));
    const kernel::MatmulStack stack = stack_of(p);
    const std::vector<char> src = random_factor(p, p.m, p.k, 1), weights = random_factor(p, p.k, p.n, 2);
    const std::vector<double> want = expected(stack, src, weights);
    std::vector<float> first;
    for (const gpu::MatrixTile& tile : gpu::tuning::kMatrixTiles) {
      SCOPED_TRACE(join("tiles of ", tile.rows, " x ", tile.columns));
      const std::vector<float> got = run(stack, tile, src, weights);
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

TEST(MatrixTiles, AreAsLargeAsKeepsEveryMultiprocessorBusy) {
  const gpu::DeviceLimits limits{.compute_units = 132};
  const auto rows_of_tile = [&](int64_t m, int64_t n, int64_t products = 1) {
    return gpu::choose_matrix_tile(m, n, products, limits).rows;
  };
  EXPECT_EQ(rows_of_tile(4096, 4096), 128);
  EXPECT_EQ(rows_of_tile(512, 4096), 64);
  EXPECT_EQ(rows_of_tile(16, 4096), 16);
  EXPECT_EQ(rows_of_tile(1, 128256), 16);
  EXPECT_EQ(rows_of_tile(64, 64, 1000), 64);
  for (const gpu::MatrixTile& tile : gpu::tuning::kMatrixTiles)
    EXPECT_LE((tile.rows + tile.columns) * tile.depth * tile.stages * 2, 48 * 1024);
}

}  // namespace
}  // namespace lamina::testing
