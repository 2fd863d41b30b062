// MatMul by the generated program, on the available OpenCL device (PoCL suffices): every form that its schema allows, compared
// with the reference. The bits depend on neither tiles nor other rows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/gpu/cuda/blas_lt.h"
#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/reference_check.h"
#include "backends/gpu/schedule/tuning.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

// For what holds of generated programs alone.
#define LAMINA_GENERATED_OR_SKIP \
  if (gpu::cuda::asks_for_blas_lt()) GTEST_SKIP() << "LAMINA_CUBLASLT=1: cuBLASLt runs the products, not a generated program"

struct Case {
  Dims src, weights;
  Dims bias = {};
  bool has_bias = false, transpose_a = false, transpose_b = false;
  DataType dtype = f32, dst = f32;
};

Graph graph_of(const Case& c) {
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.src), weights = g.input(c.dtype, c.weights);
  const uint64_t bias = c.has_bias ? g.input(c.dtype, c.bias) : kNoTensor;
  g.op(OpKind::MatMul, {src, weights, bias}, {{"transpose_a", c.transpose_a}, {"transpose_b", c.transpose_b}}, c.dst);
  return g.finish();
}

WholeRun expect_right(const Backend& gpu, const Case& c, double error = 2e-6) {
  SCOPED_TRACE(join(describe(c.src), " x ", describe(c.weights), " in ", name_of(c.dtype)));
  return expect_whole_graph_is_right(gpu, graph_of(c), error);
}

TEST(GpuMatmul, FollowsNumpysRankRules) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const auto& [src, weights] : std::vector<std::pair<Dims, Dims>>{{{5}, {5}},
                                                                       {{5}, {5, 7}},
                                                                       {{4, 5}, {5}},
                                                                       {{4, 5}, {5, 7}},
                                                                       {{3, 4, 5}, {5, 7}},
                                                                       {{2, 3, 4, 5}, {5}},
                                                                       {{5}, {2, 5, 7}},
                                                                       {{3, 4, 5}, {3, 5, 7}},
                                                                       {{2, 1, 4, 5}, {3, 5, 7}},
                                                                       {{2, 3, 4, 5}, {2, 1, 5, 7}},
                                                                       {{2, 1, 3, 4, 5}, {2, 2, 1, 5, 7}},
                                                                       {{1, 4, 5}, {6, 5, 7}},
                                                                       {{2, 3, 1, 5}, {2, 3, 5, 1}}}) {
    expect_right(*gpu, {.src = src, .weights = weights});
  }
}

TEST(GpuMatmul, TransposesEitherSide) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : {f32, bf16, f16, DataType::f64}) {
    for (const auto& [a, b] : {std::pair{true, false}, {false, true}, {true, true}}) {
      expect_right(*gpu, {.src = a ? Dims{2, 33, 50} : Dims{2, 50, 33},
                          .weights = b ? Dims{2, 70, 33} : Dims{2, 33, 70},
                          .transpose_a = a,
                          .transpose_b = b,
                          .dtype = dtype,
                          .dst = dtype});
    }
  }
}

TEST(GpuMatmul, TakesTilesThatAreNotFull) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t m : {1, 16, 17, 65}) {
    for (const int64_t n : {1, 15, 64, 130}) {
      for (const int64_t k : {1, 16, 35}) expect_right(*gpu, {.src = {m, k}, .weights = {k, n}});
    }
  }
}

TEST(GpuMatmul, AddsABiasOfAnyShape) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& bias : std::vector<Dims>{{}, {1}, {20}, {1, 20}, {9, 1}, {9, 20}, {3, 1, 1}, {3, 9, 20}, {3, 1, 20}}) {
    SCOPED_TRACE(describe(bias));
    expect_right(*gpu, {.src = {3, 9, 8}, .weights = {3, 8, 20}, .bias = bias, .has_bias = true});
    expect_right(*gpu, {.src = {3, 9, 8}, .weights = {8, 20}, .bias = bias, .has_bias = true});
  }
  expect_right(*gpu, {.src = {8}, .weights = {8, 20}, .bias = {20}, .has_bias = true});
  expect_right(*gpu, {.src = {5, 8}, .weights = {8}, .bias = {5}, .has_bias = true});
}

TEST(GpuMatmul, TakesSixteenBitTypes) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : {bf16, f16}) {
    for (const DataType dst : {dtype, f32}) {
      expect_right(*gpu, {.src = {2, 60, 96}, .weights = {2, 96, 70}, .dtype = dtype, .dst = dst});
      expect_right(*gpu, {.src = {150, 96},
                          .weights = {70, 96},
                          .bias = {70},
                          .has_bias = true,
                          .transpose_b = true,
                          .dtype = dtype,
                          .dst = dst});
    }
  }
}

TEST(GpuMatmul, TakesAnyStrides) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const auto& [src, weights] : std::vector<std::pair<Dims, Dims>>{
           {{80, 8, 1}, {200, 20, 1}}, {{300, 3, 30}, {200, 20, 1}}, {{100, 10, 1}, {400, 2, 16}}, {{100, 1, 9}, {1, 60, 3}}}) {
    GraphBuilder g;
    const auto a = g.input(f32, {3, 9, 8}, src), b = g.input(f32, {3, 8, 20}, weights);
    const auto dst = g.op(OpKind::MatMul, {a, b, kNoTensor});
    g.tensor(dst).shape = {3, 9, 20};
    g.tensor(dst).layout = LayoutType::strided;
    for (const Dims& strides : std::vector<Dims>{{180, 20, 1}, {400, 40, 2}, {400, 1, 10}}) {
      SCOPED_TRACE(describe(src) + ", " + describe(weights) + ", " + describe(strides));
      g.tensor(dst).strides = strides;
      expect_whole_graph_is_right(*gpu, g.finish());
    }
  }
}

// The row stride is so large that offsets inside a tile with many rows exceed 32 bits.
TEST(GpuMatmul, TakesRowsThatLieFarApart) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const int64_t far = (int64_t{1} << 25) + 16;
  g.op(OpKind::MatMul, {g.input(bf16, {2, 5}, {far, 1}), g.input(bf16, {5, 7}), kNoTensor}, {}, f32);
  const WholeRun run = expect_whole_graph_is_right(*gpu, g.finish());
  EXPECT_THAT(run.info.sources.at(0).second, HasSubstr("typedef lm_s64 lm_ix;"));
}

TEST(GpuMatmul, SumsOfNothingAreTheBias) {
  LAMINA_GPU_OR_SKIP(gpu);
  const WholeRun zeros = expect_right(*gpu, {.src = {4, 0}, .weights = {0, 7}});
  EXPECT_THAT(zeros.dst, ::testing::Each(0.0));
  EXPECT_EQ(zeros.dst.size(), 28U);
  expect_right(*gpu, {.src = {2, 4, 0}, .weights = {0, 7}, .bias = {4, 1}, .has_bias = true});
  expect_right(*gpu, {.src = {0, 4}, .weights = {4, 7}});
  expect_right(*gpu, {.src = {4, 5}, .weights = {5, 0}});
  expect_right(*gpu, {.src = {0, 4, 5}, .weights = {5, 7}});
}

// A NaN or an infinity affects only its own row, also next to the padding of a tile.
TEST(GpuMatmul, ANanStaysInItsRow) {
  LAMINA_GPU_OR_SKIP(gpu);
  const Graph graph = graph_of({.src = {5, 19}, .weights = {19, 21}});
  WholeRun run = expect_whole_graph_is_right(*gpu, graph);
  const LogicalTensor& src = graph.tensor(graph.inputs()[0]);
  const std::vector<double> before = run.dst;
  store_from_double(f32, run.data.at(src.id).data(), 2 * 19 + 18, std::nan(""));
  run = expect_whole_graph_is_right(*gpu, graph, 2e-6, run.data);
  for (size_t i = 0; i < run.dst.size(); ++i) {
    if (i / 21 == 2)
      EXPECT_TRUE(std::isnan(run.dst[i])) << i;
    else
      EXPECT_EQ(run.dst[i], before[i]) << i;
  }
}

// The first rows of a product equal the product of the first rows, with and without a batch.
TEST(GpuMatmul, ARowsBitsAreItsOwn) {
  LAMINA_GPU_OR_SKIP(gpu);
  LAMINA_GENERATED_OR_SKIP;
  for (const DataType dtype : {f32, bf16, f16}) {
    for (const int64_t k : {64, 777}) {
      const WholeRun whole =
          expect_whole_graph_is_right(*gpu, graph_of({.src = {70, k}, .weights = {k, 90}, .dtype = dtype}), 4e-6);
      for (const Dims& src : std::vector<Dims>{{1, k}, {7, k}, {33, k}, {4, 3, k}}) {
        const WholeRun part =
            expect_whole_graph_is_right(*gpu, graph_of({.src = src, .weights = {k, 90}, .dtype = dtype}), 4e-6, whole.data);
        EXPECT_TRUE(std::equal(part.dst.begin(), part.dst.end(), whole.dst.begin())) << name_of(dtype) << ", " << describe(src);
      }
    }
  }
}

// Each element is one chain in the order of k, independent of its tile: a smaller device gives the same bits.
TEST(GpuMatmul, BitsDependOnNoTile) {
  std::string why;
  const auto& device = test_device(why);
  if (device == nullptr) GTEST_SKIP() << why;
  const int64_t m = 37, n = 41, k = 53;
  kernel::MatmulStack stack{.m = m, .n = n, .k = k};
  stack.src = {m, k, k, 1, {}, f32}, stack.weights = {k, n, n, 1, {}, f32}, stack.dst = {m, n, n, 1, {}, f32};
  std::mt19937 random(3);
  std::uniform_real_distribution<float> around(-2.0F, 2.0F);
  std::vector<float> src(static_cast<size_t>(m * k)), weights(static_cast<size_t>(k * n)), dst(static_cast<size_t>(m * n));
  for (auto* values : {&src, &weights})
    for (float& value : *values) value = around(random);
  struct Memory {
    gpu::Device& device;
    void* handle;
    explicit Memory(gpu::Device& owner, std::vector<float>& host) : device(owner), handle(owner.allocate(host.size() * 4)) {
      owner.copy_in(nullptr, handle, 0, host.data(), host.size() * 4);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { device.release(handle); }
  } a(*device, src), b(*device, weights), c(*device, dst);
  std::vector<float> first;
  const auto expect_same_bits = [&](const gpu::ProductTile& tile) {
    SCOPED_TRACE(join(tile.threads_down, " x ", tile.threads_across, " threads of ", tile.per_thread_rows, " x ",
                      tile.per_thread_columns, ", ", tile.stages, " stages"));
    gpu::MatmulForm form = gpu::choose_form(stack, device->limits(), device->language());
    form.tile = tile;
    const auto module = device->load(emit_matmul(form, device->language())).module;
    const std::array<gpu::BufferView, 3> views = {{{a.handle, 0}, {b.handle, 0}, {c.handle, 0}}};
    const int64_t tiles = ((m + tile.rows() - 1) / tile.rows()) * ((n + tile.columns() - 1) / tile.columns());
    std::fill(dst.begin(), dst.end(), -1.0F);
    device->copy_in(nullptr, c.handle, 0, dst.data(), dst.size() * 4);
    module->launch(nullptr, 0, tiles, tile.group_size(), views, gpu::words_of(stack, form));
    device->copy_out(nullptr, dst.data(), c.handle, 0, dst.size() * 4);
    if (first.empty()) first = dst;
    EXPECT_EQ(dst, first);
  };
  for (const int side : {16, 8, 4, 1})
    for (const int per_thread : {4, 1})
      expect_same_bits({.threads_down = side, .threads_across = side, .per_thread_rows = per_thread});
  for (const gpu::tuning::TimedProductTile& timed : gpu::tuning::kProductTiles) {
    gpu::ProductTile tile = gpu::product_tile_of(timed);
    expect_same_bits(tile);
    tile.stages = 3 - tile.stages;
    expect_same_bits(tile);
  }
}

// Tiles for every multiprocessor come before tiles with fewer reads of local memory.
TEST(ProductTiles, AreThoseOfTheLeastTime) {
  const gpu::DeviceLimits limits{.compute_units = 132};
  const auto tile_of = [&](int64_t rows, int64_t columns, const gpu::DeviceLimits& of) {
    return choose_tile(rows, columns, 1, kernel::Type::f32, gpu::tuning::kElementsOfMatmul, of);
  };
  EXPECT_EQ(tile_of(4096, 4096, limits).rows(), 128);
  EXPECT_EQ(tile_of(64, 4096, limits).rows(), 32);
  for (const int64_t rows : {1, 17, 64, 200, 4096})
    for (const int group : {1, 64, 128, 256}) EXPECT_LE(tile_of(rows, 4096, {.max_group = group}).group_size(), group);
}

// scores = softmax(q k^T / 8), dst = scores v: one partition of three steps, with intermediate values in its arena.
TEST(GpuMatmul, AttentionIsOnePartitionOfThreeSteps) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : {f32, bf16}) {
    GraphBuilder g;
    const Dims shape{2, 3, 40, 16};
    const auto q = g.input(dtype, shape), k = g.input(dtype, shape), v = g.input(dtype, shape);
    const auto scores = g.op(OpKind::MatMul, {q, k, kNoTensor}, {{"transpose_b", true}}, dtype);
    const auto scaled = g.op(OpKind::Divide, {scores, g.number(8, dtype)});
    const auto weights = g.op(OpKind::SoftMax, {scaled}, {{"axis", int64_t{-1}}});
    g.op(OpKind::MatMul, {weights, v, kNoTensor}, {}, dtype);
    const Graph graph = g.finish();
    EXPECT_EQ(partition_graph(graph, PartitionPolicy::fusion, *gpu).size(), 1U);
    const WholeRun run = expect_whole_graph_is_right(*gpu, graph, dtype == f32 ? 1e-5 : 3e-2);
    EXPECT_EQ(run.info.schedules.size(), 3U);
    EXPECT_EQ(run.info.arena_bytes, static_cast<size_t>(bytes_of(dtype, 2 * 3 * 40 * 40)));  // SoftMax works in place
  }
}

// A kernel dequantises integers before the product, which runs in f32.
TEST(GpuMatmul, DequantisedIntegersAreMultipliedInF32) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const auto dequantised = [&](DataType dtype, const Dims& shape, int64_t zero_point) {
    return g.op(OpKind::Dequantize, {g.input(dtype, shape)},
                {{"scales", std::vector<float>{0.02F}}, {"zps", std::vector<int64_t>{zero_point}}}, f32);
  };
  g.op(OpKind::MatMul, {dequantised(DataType::u8, {9, 40}, 7), dequantised(DataType::s8, {40, 30}, 0), kNoTensor}, {}, f32);
  expect_whole_graph_is_right(*gpu, g.finish());
}

TEST(GpuMatmul, TheSameFormIsCompiledOnce) {
  LAMINA_GPU_OR_SKIP(gpu);
  LAMINA_GENERATED_OR_SKIP;
  const WholeRun first = expect_right(*gpu, {.src = {3, 21, 13}, .weights = {3, 13, 22}});
  EXPECT_TRUE(expect_right(*gpu, {.src = {5, 30, 17}, .weights = {5, 17, 31}}).info.from_cache);
  EXPECT_THAT(first.info.kernels, ElementsAre("lamina_matmul_f32"));
  EXPECT_THAT(first.info.schedules, ElementsAre(HasSubstr("tiles of 32 x ")));
  EXPECT_THAT(first.info.kernel_texts, ElementsAre(HasSubstr("3 products of [21, 13] and [13, 22]")));
}

TEST(GpuMatmul, LibraryOpsWithoutAProgramAreRefusedByName) {
  GraphBuilder g;
  g.op(OpKind::GroupedMatMul, {g.input(f32, {6, 8}), g.input(f32, {3, 8, 5}), g.input(DataType::s32, {3})}, {}, f32);
  const std::vector<Partition> partitions = partition_graph(g.finish(), PartitionPolicy::fusion, gpu_capabilities());
  ASSERT_EQ(partitions.size(), 1U);
  EXPECT_FALSE(partitions[0].supported);
  EXPECT_THAT(partitions[0].unsupported_reason, HasSubstr("the gpu backend has no program for GroupedMatMul"));
}

}  // namespace
}  // namespace lamina::testing
