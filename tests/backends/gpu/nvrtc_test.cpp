// Compiles the CUDA source with NVRTC for sm_80, sm_90 and sm_100, without a GPU. Registers, spills, the width of accesses and
// the absence of atomics are read from the compiler's log and from its PTX.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>

#include "backends/gpu/cuda/compile.h"
#include "backends/gpu/emit/emit_convolution.h"
#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/gpu_kernels.h"
#include "backends/gpu/schedule/registers.h"
#include "backends/gpu/schedule/tuning.h"
#include "support/code_cache_folder.h"
#include "support/convolution_graphs.h"

namespace lamina::testing {
namespace {

using namespace gpu;
constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16;

#define LAMINA_NVRTC_OR_SKIP(nvrtc)                                  \
  std::string why_no_nvrtc;                                          \
  const cuda::NvrtcApi* const nvrtc = cuda::nvrtc_api(why_no_nvrtc); \
  if (nvrtc == nullptr) GTEST_SKIP() << why_no_nvrtc

KernelSource cuda_source(const kernel::Kernel& kernel, bool aligned = true, const DeviceLimits& limits = {}) {
  return emit_kernel(kernel, choose_schedule(kernel, limits), languages::cuda, aligned, true);
}

struct Usage {
  int registers = 0, spills = 0, kernels = 0;
};

// Returns the maxima over the program's kernels, from ptxas's report.
Usage usage_of(const std::string& log) {
  Usage usage;
  const auto largest = [&](const char* pattern, int& result, int& count) {
    const std::regex expression(pattern);
    for (std::sregex_iterator found(log.begin(), log.end(), expression), end; found != end; ++found, ++count)
      result = std::max(result, std::stoi((*found)[1]));
  };
  int ignored = 0;
  largest("Used ([0-9]+) registers", usage.registers, usage.kernels);
  largest("([0-9]+) bytes spill stores", usage.spills, ignored);
  return usage;
}

// Before main: NVRTC reads the variable once. NVRTC 12.9 and newer keeps images where there is a driver, and has no report for
// one that it finds.
const bool kNothingIsKept = setenv("CUDA_CACHE_DISABLE", "1", 1) == 0;

// An image with ptxas's report.
cuda::Image image_of(const cuda::NvrtcApi& nvrtc, const KernelSource& source, int capability) {
  EXPECT_TRUE(kNothingIsKept);
  return cuda::compile(nvrtc, source.symbol, source.text, capability);
}

// PTX shows accesses and atomics: NVRTC emits it for a device newer than all that it knows.
std::string ptx_of(const cuda::NvrtcApi& nvrtc, const KernelSource& source) {
  return cuda::compile(nvrtc, source.symbol, source.text, 999).data;
}

// An H100 and its kind.
constexpr DeviceLimits kHopper{
    .compute_units = 132, .local_bytes = 227 << 10, .copies_beside_threads = true, .cluster_groups = 8};

class NvrtcNorms : public ::testing::TestWithParam<std::tuple<int, DataType>> {};

// Bytes per thread that the compiler may spill. It starts the loads of the next chunk early, also where one or two registers
// are missing. Sums of columns of 16384 elements fit in no group's registers together with a chunk; they stay there all the
// same, because spilling a few values is cheaper than reading and writing all sums for each row.
constexpr int kFewBytes = 8, kBytesBesideColumns = 24, kBytesOfLongRows = 48;
// Two groups of 512 threads with 32 elements each have 64 registers per thread. That is faster than one group without spills:
// most are in Add + LayerNorm of f16.
constexpr int kBytesOfClusters = 140;
// Tiles of 128 x 128 elements in f32 are faster with 128 registers, and two groups, than with more (tuning.h).
constexpr int kBytesOfLargeTiles = 140;
// Rows so far apart that offsets need 64 bits leave too few registers to products by matrix instructions, by a few.
constexpr int kBytesOfMatrices = 16;

TEST_P(NvrtcNorms, SpillOnlyWhereRegistersDoNotSufficeUpTo16384) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  const auto [capability, dtype] = GetParam();
  for (const int64_t size :
       {int64_t{16}, int64_t{256}, int64_t{1024}, int64_t{4096}, int64_t{8192}, int64_t{16384}, int64_t{1001}}) {
    for (const Graph& graph :
         {norm_graph(dtype, 128, size), norm_backward_graph(dtype, 128, size), residual_norm_graph(dtype, 128, size)}) {
      const kernel::Kernel kernel = first_kernel_of(graph);
      const DeviceLimits limits = capability == 90 ? kHopper : DeviceLimits{};
      const KernelSource source = cuda_source(kernel, true, limits);
      const cuda::Image image = image_of(*nvrtc, source, capability);
      const Usage usage = usage_of(image.log);
      const Schedule schedule = choose_schedule(kernel, limits);
      SCOPED_TRACE(join(kernel.name, " of ", size, " on sm_", capability, ": ", describe(schedule)));
      EXPECT_FALSE(image.data.empty());
      EXPECT_EQ(usage.kernels, kernel.has_column_sum() ? 2 : 1) << image.log;
      EXPECT_LE(usage.spills, fits_registers(kernel, schedule) ? kFewBytes : kBytesBesideColumns) << image.log;
      EXPECT_EQ(fits_registers(kernel, schedule), size < 16384 || !kernel.has_column_sum());
      EXPECT_LE(usage.registers * schedule.group_size(), 65536);
      EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
    }
  }
}

// Rows of several blocks, with one team or several per row.
TEST_P(NvrtcNorms, OfLongRowsCompileForEverySchedule) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  const auto [capability, dtype] = GetParam();
  for (const Graph& graph :
       {norm_graph(dtype, 8, 65536), norm_backward_graph(dtype, 8, 65536), residual_norm_graph(dtype, 8, 65536)}) {
    const std::vector<DeviceLimits> devices{{.compute_units = 1}, {.compute_units = 132}, kHopper};
    for (const DeviceLimits& limits : devices) {
      if (limits.cluster_groups > 1 && capability < 90) continue;
      const kernel::Kernel kernel = first_kernel_of(graph);
      const Schedule schedule = choose_schedule(kernel, limits);
      EXPECT_EQ(schedule.cluster, limits.cluster_groups > 1);
      EXPECT_EQ(schedule.split, !schedule.cluster && (limits.compute_units > 8 || kernel.has_column_sum()));
      const KernelSource source = cuda_source(kernel, true, limits);
      const cuda::Image image = image_of(*nvrtc, source, capability);
      const Usage usage = usage_of(image.log);
      SCOPED_TRACE(join(kernel.name, " on sm_", capability, ", ", describe(schedule)));
      EXPECT_EQ(usage.kernels, static_cast<int>(source.symbols.size())) << image.log;
      EXPECT_LE(usage.spills, schedule.cluster ? kBytesOfClusters : kBytesOfLongRows) << image.log;
      EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Devices, NvrtcNorms,
                         ::testing::Combine(::testing::Values(80, 90, 100), ::testing::Values(f32, bf16, f16)),
                         [](const auto& test) {
                           return join("sm_", std::get<0>(test.param), "_", name_of(std::get<1>(test.param)));
                         });

TEST(Nvrtc, CompilesEveryElementaryFunctionAndType) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  const auto compiles = [&](const Graph& graph) {
    const KernelSource source = cuda_source(first_kernel_of(graph));
    EXPECT_NO_THROW(cuda::compile(*nvrtc, source.symbol, source.text, 90)) << source.symbol;
  };
  for (const OpKind kind : {OpKind::Exp, OpKind::GELU, OpKind::Tanh, OpKind::Sigmoid, OpKind::Mish, OpKind::Round, OpKind::Log})
    compiles(unary_graph(kind, f32, {64, 64}));
  for (const DataType dtype : {bf16, f16, DataType::f64}) compiles(unary_graph(OpKind::GELU, dtype, {64, 64}));
  compiles(softmax_graph(f32, {64, 100}, 0));
  compiles(softmax_graph(DataType::f64, {64, 100}, 1));
  GraphBuilder g;
  const auto x = g.input(f32, {7, 33});
  g.multi(OpKind::Dropout, {x, g.scalar(DataType::s64), g.scalar(DataType::s64), g.scalar(f32)}, {}, {f32, DataType::u8});
  compiles(g.finish());
  GraphBuilder p;
  p.op(OpKind::Pow, {p.input(f32, {100})}, {{"beta", 2.7F}});
  compiles(p.finish());
}

TEST(Nvrtc, AccessesAreSixteenBytesWideAndNothingIsAtomic) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const DataType dtype : {f32, bf16}) {
    for (const Graph& graph : {norm_graph(dtype, 128, 4096), residual_norm_graph(dtype, 128, 1024),
                               norm_backward_graph(dtype, 128, 1024), unary_graph(OpKind::ReLU, dtype, {128, 256})}) {
      const KernelSource source = cuda_source(first_kernel_of(graph));
      const std::string ptx = ptx_of(*nvrtc, source);
      SCOPED_TRACE(source.symbol);
      const std::regex wide_load("ld\\.global(\\.nc)?\\.v4\\.[bfu]32"), wide_store("st\\.global\\.v4\\.[bfu]32");
      EXPECT_TRUE(std::regex_search(ptx, wide_load));
      EXPECT_TRUE(std::regex_search(ptx, wide_store));
      EXPECT_FALSE(std::regex_search(ptx, std::regex("\\b(atom|red)\\.")));
      EXPECT_EQ(ptx.find(".f64"), std::string::npos) << "an f32 kernel needs no double";
      const std::string unaligned = ptx_of(*nvrtc, cuda_source(first_kernel_of(graph), false));
      EXPECT_FALSE(std::regex_search(unaligned, wide_load));
    }
  }
}

// The function's body in PTX.
std::string entry_of(const std::string& ptx, const std::string& symbol) {
  const size_t begin = ptx.find(join(".entry ", symbol, "("));
  return begin == std::string::npos ? "" : ptx.substr(begin, ptx.find("\n}\n", begin) - begin);
}

TEST(Nvrtc, PartialSumsOfColumnsAreStoredSixteenBytesAtATime) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const DataType dtype : {f32, bf16}) {
    for (const int64_t size : {4096, 65536}) {
      const KernelSource source = cuda_source(first_kernel_of(norm_backward_graph(dtype, 128, size)));
      const std::string last_walk = entry_of(ptx_of(*nvrtc, source), source.symbols.at(source.symbols.size() - 2));
      SCOPED_TRACE(join(name_of(dtype), ", ", size));
      EXPECT_TRUE(std::regex_search(last_walk, std::regex("st\\.global\\.v4\\.[bfu]32")));
      EXPECT_FALSE(std::regex_search(last_walk, std::regex("st\\.global\\.[bfu]32")));
    }
  }
}

TEST(Nvrtc, MatrixProductsUseNoDoublesAndTheInstructionsOfTheirType) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const DataType dtype : {f32, bf16, f16}) {
    for (const int64_t rows : {int64_t{1}, int64_t{128}}) {
      for (const int64_t row_stride : {int64_t{128}, int64_t{1} << 30}) {
        kernel::MatmulStack stack{.m = rows, .n = 128, .k = 128, .batch = {4}, .has_bias = true};
        stack.src = {rows, 128, row_stride, 1, {rows * 128}, dtype};
        stack.weights = {128, 128, 1, 128, {0}, dtype};
        stack.bias = {1, 128, 0, 1, {0}, dtype};
        stack.dst = {rows, 128, 128, 1, {rows * 128}, dtype};
        const KernelSource source = emit_matmul(choose_form(stack, {}, languages::cuda), languages::cuda);
        SCOPED_TRACE(join(name_of(dtype), ", ", rows, " rows, ", row_stride, " apart"));
        for (const int capability : {80, 90, 100}) {
          const cuda::Image image = image_of(*nvrtc, source, capability);
          EXPECT_EQ(usage_of(image.log).kernels, 1) << image.log;
          EXPECT_LE(usage_of(image.log).spills, rows == 1      ? 0
                                                : dtype == f32 ? kBytesOfLargeTiles
                                                               : kBytesOfMatrices)
              << image.log;
          EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
        }
        const std::string ptx = ptx_of(*nvrtc, source);
        EXPECT_EQ(ptx.find(".f64"), std::string::npos);
        if (dtype == f32) {
          EXPECT_TRUE(std::regex_search(ptx, std::regex("fma\\.rn\\.f32")));
          continue;
        }
        EXPECT_TRUE(std::regex_search(ptx, std::regex(join("mma\\.sync.*f32\\.", name_of(dtype)))));
        EXPECT_TRUE(std::regex_search(ptx, std::regex("ldmatrix\\.sync")));
        EXPECT_TRUE(std::regex_search(ptx, std::regex("cp\\.async")));
      }
    }
  }
}

TEST(Nvrtc, TilesOfThreadsDoNotSpill) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const tuning::TimedProductTile& timed : tuning::kProductTiles) {
    for (const int stages : {1, 2}) {
      for (const bool along : {true, false}) {
        kernel::MatmulStack stack{.m = 512, .n = 512, .k = 512};
        stack.src = stack.weights = {512, 512, along ? 512 : 1, along ? 1 : 512, {}, f32};
        stack.dst = {512, 512, 512, 1, {}, f32};
        MatmulForm form = choose_form(stack, {}, languages::cuda);
        form.tile = product_tile_of(timed);
        form.tile.stages = stages;
        SCOPED_TRACE(join("tiles of ", form.rows(), " x ", form.columns(), " by ", form.group_size(), " threads, ", stages,
                          " stages", along ? "" : ", factors the other way round"));
        const cuda::Image image = image_of(*nvrtc, emit_matmul(form, languages::cuda), 90);
        EXPECT_LE(usage_of(image.log).spills, timed.elements_of_thread() == 64 ? kBytesOfLargeTiles : 0) << image.log;
        EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
      }
    }
  }
}

// Instructions of four warps run while the warps go on, unless the compiler finds that their registers are used meanwhile.
void expect_products_of_four_warps(const cuda::NvrtcApi& nvrtc, const KernelSource& source) {
  const cuda::Image image = image_of(nvrtc, source, 90);
  EXPECT_EQ(usage_of(image.log).spills, 0) << image.log;
  EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
  EXPECT_EQ(image.log.find("serialized"), std::string::npos) << image.log;
  EXPECT_THAT(ptx_of(nvrtc, source), ::testing::HasSubstr("wgmma.mma_async"));
}

TEST(Nvrtc, TilesOfFourWarpsUseTheirInstructions) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const MatrixTile& tile : tuning::kMatrixTiles) {
    if (!tile.by_four_warps) continue;
    for (const bool along : {true, false}) {
      SCOPED_TRACE(join("tiles of ", tile.rows, " x ", tile.columns, along ? "" : ", factors the other way round"));
      kernel::MatmulStack stack{.m = 512, .n = 512, .k = 512};
      stack.src = stack.weights = {512, 512, along ? 512 : 1, along ? 1 : 512, {}, bf16};
      stack.dst = {512, 512, 512, 1, {}, bf16};
      MatmulForm form = choose_form(stack, {}, languages::cuda);
      form.matrix_tile = tile;
      expect_products_of_four_warps(*nvrtc, emit_matmul(form, languages::cuda));
      // Copies of elements make the compiler wait for every product. In NCX, the factors are copied with their channels last.
      const kernel::WindowedContraction c = kernel::windowed_contraction_of(library_step_of(graph_of(
          {.batch = 8, .src_channels = 64, .dst_channels = 64, .channels_last = along, .taps_first = along, .dtype = f16})));
      ConvolutionForm of_convolution = choose_form(c, {}, languages::cuda);
      of_convolution.matrix_tile = tile;
      of_convolution.copies = copies_that_make_chunks(c);
      EXPECT_EQ(of_convolution.copies, (FactorCopies{.left = !along, .right = !along}));
      expect_products_of_four_warps(*nvrtc, emit_convolution(c, of_convolution, languages::cuda));
      if (!along) continue;
      const kernel::WindowedContraction gradient = kernel::windowed_contraction_of(library_step_of(graph_of(
          {.kind = OpKind::ConvolutionBackwardWeights, .batch = 64, .src_channels = 64, .dst_channels = 64, .dtype = f16})));
      ConvolutionForm in_segments = choose_form(gradient, {}, languages::cuda);
      EXPECT_NE(in_segments.segment_terms, 0);
      in_segments.matrix_tile = tile;
      expect_products_of_four_warps(*nvrtc, emit_convolution(gradient, in_segments, languages::cuda));
    }
  }
}

TEST(Nvrtc, CopiesWithChannelsLastAccessSixteenBytesOfThemAtOnce) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const OpKind kind : kConvolutionKinds) {
    for (const int64_t channels : {8, 16, 64}) {
      const kernel::WindowedContraction c = kernel::windowed_contraction_of(library_step_of(graph_of({.kind = kind,
                                                                                                      .src_channels = channels,
                                                                                                      .dst_channels = channels,
                                                                                                      .channels_last = false,
                                                                                                      .taps_first = false,
                                                                                                      .dtype = bf16})));
      ConvolutionForm form = choose_form(c, {}, languages::cuda);
      form.copies = copies_that_make_chunks(c);
      EXPECT_EQ(form.copies, (FactorCopies{.left = true, .right = true}));
      const KernelSource source = emit_convolution(c, form, languages::cuda);
      const std::string ptx = ptx_of(*nvrtc, source);
      for (const std::string& symbol : {source.symbols.at(0), source.symbols.at(1)}) {
        SCOPED_TRACE(join(name_of(kind), ", ", channels, " channels, ", symbol));
        const std::string copy = entry_of(ptx, symbol);
        for (const char* const wide : {"st\\.shared\\.v4", "ld\\.shared\\.v4", "st\\.global\\.v4"})
          EXPECT_TRUE(std::regex_search(copy, std::regex(wide))) << wide;
        EXPECT_FALSE(std::regex_search(copy, std::regex("(st\\.shared|ld\\.shared|st\\.global)\\.[bu]")));
        const std::string reads = copy.substr(0, copy.find("bar.sync"));
        EXPECT_FALSE(std::regex_search(reads, std::regex("\\bbra\\b"))) << "all loads are under way together";
      }
      EXPECT_EQ(usage_of(image_of(*nvrtc, source, 90).log).spills, 0);
    }
  }
}

TEST(Nvrtc, ConvolutionsDoNotSpill) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const DataType dtype : {f32, bf16}) {
    for (const OpKind kind : kConvolutionKinds) {
      for (const bool channels_last : {true, false}) {
        SCOPED_TRACE(join(name_of(kind), " ", name_of(dtype), channels_last ? " NXC" : " NCX"));
        const Graph graph = graph_of({.kind = kind,
                                      .batch = 8,
                                      .src_channels = 64,
                                      .dst_channels = 128,
                                      .space = {56, 56},
                                      .strides = {2, 2},
                                      .channels_last = channels_last,
                                      .dtype = dtype});
        const KernelSource source = convolution_op().program(library_step_of(graph), {}, languages::cuda).source;
        for (const int capability : {80, 90}) {
          const cuda::Image image = image_of(*nvrtc, source, capability);
          EXPECT_LE(usage_of(image.log).spills, dtype == f32 ? 0 : kFewBytes) << image.log;
          EXPECT_EQ(image.log.find("warning"), std::string::npos) << image.log;
        }
        EXPECT_EQ(ptx_of(*nvrtc, source).find(".f64"), std::string::npos);
      }
    }
  }
}

TEST(Nvrtc, CompilesProgramsAlongAnAxisForEveryType) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  for (const DataType dtype : {f32, bf16, f16, DataType::f64, DataType::s32, DataType::s64}) {
    for (const bool is : {false, true}) {
      const KernelSource sums =
          running_op().program(library_step_of(cum_sum_graph(dtype, {4, 5, 6}, is, !is)), {}, languages::cuda).source;
      EXPECT_NO_THROW(cuda::compile(*nvrtc, sums.symbol, sums.text, 90)) << sums.symbol;
      const KernelSource recurrence =
          is_floating(dtype)
              ? recurrence_op().program(library_step_of(recurrence_graph(dtype, {4, 5, 6}, is)), {}, languages::cuda).source
              : sums;
      EXPECT_NO_THROW(cuda::compile(*nvrtc, recurrence.symbol, recurrence.text, 90)) << recurrence.symbol;
      const KernelSource order =
          top_k_op().program(library_step_of(top_k_graph(dtype, {4, 64}, is)), {}, languages::cuda).source;
      EXPECT_NO_THROW(cuda::compile(*nvrtc, order.symbol, order.text, 90)) << order.symbol;
    }
  }
}

class NvrtcCache : public CodeCacheFolder {};

TEST_F(NvrtcCache, KeepsImagesOnDisk) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  const CodeCache cache(folder_);
  const KernelSource source = cuda_source(first_kernel_of(unary_graph(OpKind::ReLU, f32, {8, 8})));
  const cuda::Image first = cuda::compile(*nvrtc, source.symbol, source.text, 90, &cache),
                    second = cuda::compile(*nvrtc, source.symbol, source.text, 90, &cache);
  const cuda::Image other = cuda::compile(*nvrtc, source.symbol, source.text, 80, &cache);
  EXPECT_FALSE(first.from_cache);
  EXPECT_TRUE(second.from_cache);
  EXPECT_EQ(first.data, second.data);
  EXPECT_FALSE(other.from_cache);
  EXPECT_EQ(file_count(), 2U);
}

TEST(Nvrtc, ADeviceOlderThanAllItKnowsIsRefused) {
  LAMINA_NVRTC_OR_SKIP(nvrtc);
  try {
    cuda::compile(*nvrtc, "k", "", 20);
    FAIL() << "nothing was thrown";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr("compute capability 20 is older"));
  }
}

}  // namespace
}  // namespace lamina::testing
