// The calls to cuBLASLt, without a GPU: row-major products as column-major ones. A mock library multiplies in host memory
// exactly as its descriptors specify.
#include "backends/gpu/cuda/blas_lt.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "backends/gpu/cuda/context.h"

namespace lamina::testing {
namespace {

using namespace gpu::cuda;
using kernel::MatmulStack;
using ::testing::AnyOf;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

// ---- the mapping

MatmulStack row_major(int64_t m, int64_t n, int64_t k, DataType dtype = f32) {
  MatmulStack stack{.m = m, .n = n, .k = k};
  stack.src = {m, k, k, 1, {}, dtype}, stack.weights = {k, n, n, 1, {}, dtype}, stack.dst = {m, n, n, 1, {}, dtype};
  return stack;
}

TEST(BlasLtProblem, RowMajorMatricesAreTransposesThatSwapPlaces) {
  const LtProblem problem = lt_problem(row_major(4, 7, 5)).value();
  EXPECT_EQ(problem.a, (LtMatrix{.type = 0, .rows = 7, .columns = 5, .leading = 7}));  // weights
  EXPECT_EQ(problem.b, (LtMatrix{.type = 0, .rows = 5, .columns = 4, .leading = 5}));  // src
  EXPECT_EQ(problem.d, (LtMatrix{.type = 0, .rows = 7, .columns = 4, .leading = 7}));
  EXPECT_EQ(problem.batch, 1);
}

TEST(BlasLtProblem, AColumnMajorFactorIsTransposed) {
  MatmulStack stack = row_major(4, 7, 5);
  stack.weights.row_stride = 1, stack.weights.column_stride = 9;
  EXPECT_EQ(lt_problem(stack)->a, (LtMatrix{.type = 0, .rows = 5, .columns = 7, .leading = 9, .transposed = true}));
  stack.src.row_stride = 1, stack.src.column_stride = 4;
  EXPECT_EQ(lt_problem(stack)->b, (LtMatrix{.type = 0, .rows = 4, .columns = 5, .leading = 4, .transposed = true}));
}

TEST(BlasLtProblem, BatchStridesAreThoseOfTheOneBatchDim) {
  MatmulStack stack = row_major(4, 7, 5);
  stack.batch = {6};
  stack.src.batch_strides = {20}, stack.weights.batch_strides = {0}, stack.dst.batch_strides = {100};
  const LtProblem problem = lt_problem(stack).value();
  EXPECT_EQ(problem.batch, 6);
  EXPECT_EQ(problem.a.batch_stride, 0);
  EXPECT_EQ(problem.b.batch_stride, 20);
  EXPECT_EQ(problem.d.batch_stride, 100);
}

TEST(BlasLtProblem, StridesOfOneRowOrColumnMeanNothing) {
  MatmulStack row = row_major(1, 7, 5);
  row.src.row_stride = row.dst.row_stride = 0;
  EXPECT_EQ(lt_problem(row)->b.leading, 5);
  EXPECT_EQ(lt_problem(row)->d.leading, 7);
  MatmulStack column = row_major(4, 1, 5);
  column.weights.column_stride = 0;
  EXPECT_EQ(lt_problem(column)->a, (LtMatrix{.type = 0, .rows = 1, .columns = 5, .leading = 1}));
}

TEST(BlasLtProblem, TypesAndComputeTypes) {
  EXPECT_EQ(lt_problem(row_major(4, 7, 5))->compute, 69) << "f32 without TF32";
  EXPECT_EQ(lt_problem(row_major(4, 7, 5, f16))->compute, 68);
  EXPECT_EQ(lt_problem(row_major(4, 7, 5, f16))->a.type, 2);
  MatmulStack wide = row_major(4, 7, 5, bf16);
  wide.dst.dtype = f32;
  EXPECT_EQ(lt_problem(wide)->a.type, 14);
  EXPECT_EQ(lt_problem(wide)->d.type, 0);
}

TEST(BlasLtProblem, LeavesTheRestToTheGeneratedProgram) {
  MatmulStack biased = row_major(4, 7, 5);
  biased.has_bias = true;
  MatmulStack deep = row_major(4, 7, 5);
  deep.batch = {2, 3};
  deep.src.batch_strides = deep.weights.batch_strides = deep.dst.batch_strides = {300, 100};
  MatmulStack scattered = row_major(4, 7, 5);
  scattered.src.row_stride = 20, scattered.src.column_stride = 2;
  MatmulStack columns = row_major(4, 7, 5);
  columns.dst.row_stride = 1, columns.dst.column_stride = 4;
  MatmulStack mixed = row_major(4, 7, 5);
  mixed.weights.dtype = bf16;
  for (const MatmulStack& stack : {biased, deep, scattered, columns, mixed, row_major(4, 7, 0), row_major(0, 7, 5)})
    EXPECT_FALSE(lt_problem(stack).has_value());
}

// ---- a library in host memory

struct Layout {
  int type;
  int64_t rows, columns, leading;
  std::map<int, int64_t> attributes = {};
};
struct Description {
  std::map<int, int> attributes = {};
};

struct Library {
  int alive = 0, multiplied = 0, found = 1;
  size_t workspace = 0;
  std::map<int, uint32_t> preferences;
};
Library library;

template <typename Opaque, typename T, typename... Parts>
LtStatus make(Opaque* place, Parts... parts) {
  ++library.alive;
  *place = reinterpret_cast<Opaque>(new T{parts...});
  return 0;
}
template <typename T, typename Opaque>
LtStatus destroy(Opaque made) {
  --library.alive;
  delete reinterpret_cast<T*>(made);
  return 0;
}

float element(const void* data, const Layout& layout, bool transposed, int64_t batch, int64_t row, int64_t column) {
  if (transposed) std::swap(row, column);
  const int64_t at = batch * layout.attributes.at(6) + column * layout.leading + row;
  return static_cast<const float*>(data)[at];
}

LtStatus multiply(LtHandle, LtDescription what, const void* alpha, const void* a, LtLayout a_layout, const void* b,
                  LtLayout b_layout, const void* beta, const void*, LtLayout, void* d, LtLayout d_layout, const LtAlgorithm*,
                  void*, size_t workspace, CUstream) {
  ++library.multiplied;
  EXPECT_EQ(*static_cast<const float*>(alpha), 1.0F);
  EXPECT_EQ(*static_cast<const float*>(beta), 0.0F);
  EXPECT_EQ(workspace, 0U);
  const Description& description = *reinterpret_cast<Description*>(what);
  const Layout &left = *reinterpret_cast<Layout*>(a_layout), &right = *reinterpret_cast<Layout*>(b_layout),
               &result = *reinterpret_cast<Layout*>(d_layout);
  const bool turn_left = description.attributes.at(3) == 1, turn_right = description.attributes.at(4) == 1;
  for (int64_t batch = 0; batch < result.attributes.at(5); ++batch) {
    for (int64_t column = 0; column < result.columns; ++column) {
      for (int64_t row = 0; row < result.rows; ++row) {
        float sum = 0;
        for (int64_t k = 0; k < (turn_left ? left.rows : left.columns); ++k)
          sum += element(a, left, turn_left, batch, row, k) * element(b, right, turn_right, batch, k, column);
        static_cast<float*>(d)[batch * result.attributes.at(6) + column * result.leading + row] = sum;
      }
    }
  }
  return 0;
}

const LtApi& library_table() {
  static const LtApi table = [] {
    LtApi api;
    api.create = [](LtHandle* handle) { return make<LtHandle, int>(handle); };
    api.destroy = [](LtHandle handle) { return destroy<int>(handle); };
    api.status_name = [](LtStatus) { return "CUBLAS_STATUS_INVALID_VALUE"; };
    api.create_layout = [](LtLayout* layout, int type, uint64_t rows, uint64_t columns, int64_t leading) {
      return make<LtLayout, Layout>(layout, type, static_cast<int64_t>(rows), static_cast<int64_t>(columns), leading);
    };
    api.destroy_layout = [](LtLayout layout) { return destroy<Layout>(layout); };
    api.set_layout = [](LtLayout layout, int what, const void* value, size_t bytes) {
      reinterpret_cast<Layout*>(layout)->attributes[what] =
          bytes == 4 ? *static_cast<const int32_t*>(value) : *static_cast<const int64_t*>(value);
      return 0;
    };
    api.create_description = [](LtDescription* description, int compute, int scale) {
      EXPECT_THAT(compute, AnyOf(68, 69));
      EXPECT_EQ(scale, 0) << "alpha and beta are f32";
      return make<LtDescription, Description>(description);
    };
    api.destroy_description = [](LtDescription description) { return destroy<Description>(description); };
    api.set_description = [](LtDescription description, int what, const void* value, size_t) {
      reinterpret_cast<Description*>(description)->attributes[what] = *static_cast<const int32_t*>(value);
      return 0;
    };
    api.create_preference = [](LtPreference* preference) { return make<LtPreference, int>(preference); };
    api.destroy_preference = [](LtPreference preference) { return destroy<int>(preference); };
    api.set_preference = [](LtPreference, int what, const void* value, size_t) {
      library.preferences[what] = *static_cast<const uint32_t*>(value);
      return 0;
    };
    api.heuristic = [](LtHandle, LtDescription, LtLayout, LtLayout, LtLayout, LtLayout, LtPreference, int, LtHeuristic* result,
                       int* count) {
      result->workspace_bytes = library.workspace;
      *count = library.found;
      return 0;
    };
    api.multiply = multiply;
    return api;
  }();
  return table;
}

const DriverApi& driver_table() {
  static const DriverApi table = [] {
    DriverApi api;
    api.error_name = [](CUresult, const char** name) { return *name = "CUDA_ERROR", 0; };
    api.retain_primary_context = [](CUcontext*, CUdevice) { return 0; };
    api.release_primary_context = [](CUdevice) { return 0; };
    api.push_context = [](CUcontext) { return 0; };
    api.pop_context = [](CUcontext*) { return 0; };
    api.create_stream = [](CUstream*, unsigned) { return 0; };
    api.destroy_stream = [](CUstream) { return 0; };
    return api;
  }();
  return table;
}

class Generated final : public gpu::StepRunner {
 public:
  explicit Generated(int& runs) : runs_(runs) {}
  void prepare() override { FAIL() << "compiled although the library multiplies"; }
  void run(void*, std::span<const gpu::BufferView>, gpu::BufferView) const override { ++runs_; }
  size_t scratch_bytes() const override { return 0; }
  const gpu::KernelSource& source() const override { return source_; }
  std::string schedule_name() const override { return "generated"; }
  std::string text() const override { return "text"; }
  bool from_cache() const override { return true; }

 private:
  int& runs_;
  gpu::KernelSource source_;
};

class BlasLtRuns : public ::testing::Test {
 protected:
  void SetUp() override { library = {}; }

  std::unique_ptr<gpu::StepRunner> runner_of(const MatmulStack& stack) {
    const auto context = std::make_shared<const Context>(driver_table(), 0, nullptr);
    return blas_lt_runner(std::make_shared<const BlasLt>(library_table(), driver_table(), context), stack,
                          std::make_unique<Generated>(generated_runs_));
  }

  int generated_runs_ = 0;
};

double at(const std::vector<float>& data, const kernel::MatrixStack& matrix, int64_t batch, int64_t row, int64_t column) {
  const int64_t batch_stride = matrix.batch_strides.empty() ? 0 : matrix.batch_strides[0];
  return static_cast<double>(
      data[static_cast<size_t>(batch * batch_stride + row * matrix.row_stride + column * matrix.column_stride)]);
}

TEST_F(BlasLtRuns, TheLibraryIsToldTheSameProduct) {
  for (const bool turned_src : {false, true}) {
    for (const bool turned_weights : {false, true}) {
      for (const int64_t batch : {1, 3}) {
        const int64_t m = 4, n = 7, k = 5;
        MatmulStack stack = row_major(m, n, k);
        if (turned_src) stack.src.row_stride = 1, stack.src.column_stride = m + 1;
        if (turned_weights) stack.weights.row_stride = 1, stack.weights.column_stride = k + 2;
        if (batch > 1) {
          stack.batch = {batch};
          stack.src.batch_strides = {40}, stack.weights.batch_strides = {0}, stack.dst.batch_strides = {30};
        }
        std::vector<float> src(200), weights(200), dst(200);
        std::mt19937 random(7);
        for (auto* values : {&src, &weights})
          for (float& value : *values) value = static_cast<float>(static_cast<int>(random() % 19) - 9);
        const auto runner = runner_of(stack);
        EXPECT_EQ(runner->schedule_name(), "cuBLASLt");
        const gpu::BufferView views[] = {{src.data(), 0}, {weights.data(), 0}, {}, {dst.data(), 0}};
        runner->run(nullptr, views, {});
        for (int64_t b = 0; b < batch; ++b) {
          for (int64_t row = 0; row < m; ++row) {
            for (int64_t column = 0; column < n; ++column) {
              double sum = 0;
              for (int64_t i = 0; i < k; ++i) sum += at(src, stack.src, b, row, i) * at(weights, stack.weights, b, i, column);
              ASSERT_EQ(at(dst, stack.dst, b, row, column), sum) << b << ", " << row << ", " << column;
            }
          }
        }
      }
    }
  }
  EXPECT_EQ(library.alive, 0);
  EXPECT_EQ(library.preferences.at(3), 0U) << "no sum is split";
  EXPECT_EQ(generated_runs_, 0);
}

TEST_F(BlasLtRuns, WhatIsNotAlignedIsGenerated) {
  const auto runner = runner_of(row_major(4, 4, 4));
  std::vector<float> memory(100);
  const gpu::BufferView views[] = {{memory.data(), 4}, {memory.data(), 16}, {memory.data(), 32}};
  runner->run(nullptr, views, {});
  EXPECT_EQ(library.multiplied, 0);
  EXPECT_EQ(generated_runs_, 1);
}

TEST_F(BlasLtRuns, WithoutAnAlgorithmTheProgramIsGenerated) {
  library.found = 0;
  EXPECT_EQ(runner_of(row_major(4, 4, 4))->schedule_name(), "generated");
  library.found = 1, library.workspace = 1024;
  EXPECT_EQ(runner_of(row_major(4, 4, 4))->schedule_name(), "generated");
  EXPECT_EQ(library.alive, 0);
}

// The real library creates descriptors without a device: it checks the ids, values and sizes of attributes.
TEST(BlasLtApi, TakesTheAttributesThatAreSet) {
  std::string why;
  const LtApi* const api = lt_api(why);
  if (api == nullptr) GTEST_SKIP() << why;
  LtLayout layout = nullptr;
  LtDescription description = nullptr;
  LtPreference preference = nullptr;
  const int32_t number = 1;
  const int64_t offset = 64;
  EXPECT_EQ(api->create_layout(&layout, 14, 8, 4, 8), 0);
  EXPECT_EQ(api->set_layout(layout, 5, &number, sizeof number), 0);
  EXPECT_EQ(api->set_layout(layout, 6, &offset, sizeof offset), 0);
  EXPECT_NE(api->set_layout(layout, 6, &number, sizeof number), 0) << "an offset has 64 bits";
  EXPECT_EQ(api->create_description(&description, 69, 0), 0);
  EXPECT_EQ(api->set_description(description, 3, &number, sizeof number), 0);
  EXPECT_EQ(api->create_preference(&preference), 0);
  for (const int what : {3, 5, 6, 7, 8}) EXPECT_EQ(api->set_preference(preference, what, &number, sizeof number), 0) << what;
  EXPECT_EQ(api->destroy_preference(preference), 0);
  EXPECT_EQ(api->destroy_description(description), 0);
  EXPECT_EQ(api->destroy_layout(layout), 0);
  EXPECT_STREQ(api->status_name(0), "CUBLAS_STATUS_SUCCESS");
}

}  // namespace
}  // namespace lamina::testing
