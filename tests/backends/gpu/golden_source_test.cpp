// The source text of generated kernels, stored in tests/backends/gpu/golden: a change of emission appears as a readable diff.
// All languages share this text; preludes are excluded. LAMINA_UPDATE_GOLDEN=1 rewrites the files.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>

#include "backends/gpu/emit/emit_matmul.h"
#include "backends/gpu/emit/library_program.h"
#include "backends/gpu/gpu_kernels.h"
#include "support/convolution_graphs.h"
#include "support/files.h"
#include "support/foreign_locale.h"

namespace lamina::testing {
namespace {

namespace fs = std::filesystem;

const gpu::Language* const kLanguages[] = {&gpu::languages::cuda, &gpu::languages::hip, &gpu::languages::opencl};

void expect_golden(const std::string& name, const std::string& body) {
  const fs::path path = kTree / "tests" / "backends" / "gpu" / "golden" / (name + ".txt");
  if (std::getenv("LAMINA_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << body;
  EXPECT_EQ(body, text_of(path)) << name;
}

void expect_golden(const std::string& name, const Graph& graph, const gpu::DeviceLimits& limits = {}) {
  const kernel::Kernel kernel = first_kernel_of(graph);
  const gpu::Schedule schedule = gpu::choose_schedule(kernel, limits);
  const std::string cuda = gpu::emit_kernel(kernel, schedule, gpu::languages::cuda, true, true).body;
  for (const gpu::Language* const language : kLanguages)
    EXPECT_EQ(gpu::emit_kernel(kernel, schedule, *language, true, true).body, cuda) << language->name;
  expect_golden(name, cuda);
}

TEST(GoldenSource, BlockOfANorm) { expect_golden("layer_norm_f32_1024", norm_graph(DataType::f32, 64, 1024)); }
TEST(GoldenSource, SeveralLanesOfAThread) {
  expect_golden("layer_norm_backward_f32_1024_in_small_groups", norm_backward_graph(DataType::f32, 64, 1024),
                {.max_group = 64});
}
TEST(GoldenSource, RowsInAWarp) { expect_golden("layer_norm_bf16_64", norm_graph(DataType::bf16, 64, 64)); }
TEST(GoldenSource, ColumnSums) { expect_golden("layer_norm_backward_f32_1024", norm_backward_graph(DataType::f32, 64, 1024)); }
TEST(GoldenSource, RowsOfSeveralBlocks) { expect_golden("layer_norm_f32_40000", norm_graph(DataType::f32, 4, 40000)); }
TEST(GoldenSource, FewRowsSharedByTeams) {
  expect_golden("layer_norm_f32_40000_split", norm_graph(DataType::f32, 4, 40000), {.compute_units = 132});
}
TEST(GoldenSource, RowsOfAClusterOfGroups) {
  const kernel::Kernel kernel = first_kernel_of(norm_graph(DataType::f32, 4, 40000));
  const gpu::Schedule schedule = gpu::choose_schedule(kernel, {.cluster_groups = 8});
  EXPECT_EQ(gpu::name_of(kernel, schedule), "cluster");
  expect_golden("layer_norm_f32_40000_cluster", gpu::emit_kernel(kernel, schedule, gpu::languages::cuda, true, true).body);
}
TEST(GoldenSource, RowsCopiedAhead) {
  const kernel::Kernel kernel = first_kernel_of(norm_backward_graph(DataType::bf16, 64, 1024));
  const gpu::Schedule schedule = gpu::choose_schedule(kernel, {.local_bytes = 227 << 10, .copies_beside_threads = true});
  EXPECT_TRUE(schedule.copies_ahead);
  expect_golden("layer_norm_backward_bf16_1024_ahead",
                gpu::emit_kernel(kernel, schedule, gpu::languages::cuda, true, true).body);
}
TEST(GoldenSource, RowsSideBySide) { expect_golden("softmax_f32_100_along_rows", softmax_graph(DataType::f32, {100, 64}, 0)); }
TEST(GoldenSource, Windows) {
  expect_golden("max_pool_f32_3x2", pool_graph(OpKind::MaxPool, DataType::f32, "NXC", {3, 2}));
  expect_golden("avg_pool_f32_7x6", pool_graph(OpKind::AvgPool, DataType::f32, "NCX", {7, 6}));
}
TEST(GoldenSource, Resampling) {
  expect_golden("interpolate_linear_f32", interpolate_graph(OpKind::Interpolate, "linear", "NXC"));
}
TEST(GoldenSource, Elementwise) { expect_golden("relu_f16", unary_graph(OpKind::ReLU, DataType::f16, {64, 64})); }

TEST(GoldenSource, MatrixProduct) {
  kernel::MatmulStack stack{.m = 100, .n = 100, .k = 100, .batch = {2, 3}, .has_bias = true};
  stack.src = {100, 100, 100, 1, {30000, 10000}, DataType::bf16};
  stack.weights = {100, 100, 1, 100, {10000, 0}, DataType::bf16};
  stack.bias = {1, 100, 0, 1, {0, 0}, DataType::bf16};
  stack.dst = {100, 100, 100, 1, {30000, 10000}, DataType::f32};
  gpu::MatmulForm form = gpu::choose_form(stack, {}, gpu::languages::opencl);
  const std::string cuda = gpu::emit_matmul(form, gpu::languages::cuda).body;
  for (const gpu::Language* const language : kLanguages)
    EXPECT_EQ(gpu::emit_matmul(form, *language).body, cuda) << language->name;
  expect_golden("matmul_bf16_transposed_weights", cuda);
  form = gpu::choose_form(stack, {.compute_units = 132}, gpu::languages::cuda);
  expect_golden("matmul_bf16_matrix_instructions", gpu::emit_matmul(form, gpu::languages::cuda).body);
}

void expect_golden(const std::string& name, const gpu::LibraryOp& op, const Graph& graph) {
  const kernel::LibraryStep step = library_step_of(graph);
  const std::string cuda = op.program(step, {}, gpu::languages::cuda).source.body;
  for (const gpu::Language* const language : kLanguages)
    EXPECT_EQ(op.program(step, {}, *language).source.body, cuda) << language->name;
  expect_golden(name, cuda);
}

TEST(GoldenSource, AlongAnAxis) {
  expect_golden("recurrence_bf16", gpu::recurrence_op(), recurrence_graph(DataType::bf16, {4, 5, 6}, false));
  expect_golden("recurrence_backward_f32", gpu::recurrence_op(), recurrence_graph(DataType::f32, {4, 5, 6}, true));
  expect_golden("cum_sum_bf16_exclusive", gpu::running_op(), cum_sum_graph(DataType::bf16, {4, 5, 6}, true, false));
  expect_golden("top_k_f32", gpu::top_k_op(), top_k_graph(DataType::f32, {4, 64}, true));
}

TEST(GoldenSource, Convolution) {
  ConvolutionCase c{.src_channels = 6, .dst_channels = 6, .groups = 6, .strides = {2, 1}, .dtype = DataType::bf16};
  expect_golden("convolution_bf16_depthwise", gpu::convolution_op(), graph_of(c));
  c = {.src_channels = 6, .strides = {2, 1}, .dtype = DataType::f32};
  expect_golden("convolution_f32", gpu::convolution_op(), graph_of(c));
  const gpu::DeviceLimits hopper{.compute_units = 132, .local_bytes = 227 << 10, .multiplies_by_four_warps = true};
  c = {.batch = 64, .src_channels = 64, .dst_channels = 64, .space = {32, 32}, .strides = {2, 1}, .dtype = DataType::bf16};
  expect_golden("convolution_bf16_matrix_instructions",
                gpu::convolution_op().program(library_step_of(graph_of(c)), hopper, gpu::languages::cuda).source.body);
  c.kind = OpKind::ConvolutionBackwardWeights;
  expect_golden("convolution_bf16_gradient_in_segments",
                gpu::convolution_op().program(library_step_of(graph_of(c)), hopper, gpu::languages::cuda).source.body);
  c.channels_last = false;
  expect_golden("convolution_bf16_gradient_of_copies",
                gpu::convolution_op().program(library_step_of(graph_of(c)), hopper, gpu::languages::cuda).source.body);
}

// The host program may set any locale: run-time compilers must receive the same text.
std::string whole_source(const gpu::Language& language) {
  const kernel::Kernel kernel = first_kernel_of(norm_backward_graph(DataType::f32, 20000, 1024));
  const gpu::DeviceLimits limits;
  return gpu::emit_kernel(kernel, gpu::choose_schedule(kernel, limits), language, true, true).text;
}

TEST(GoldenSource, KnowsNoLocaleOfStreams) {
  for (const gpu::Language* const language : kLanguages) {
    const std::string expected = whole_source(*language);
    const GroupedNumbers grouped;
    EXPECT_EQ(whole_source(*language), expected);
  }
}

TEST(GoldenSource, KnowsNoLocaleOfC) {
  for (const gpu::Language* const language : kLanguages) {
    const std::string expected = whole_source(*language);
    const DecimalComma comma;
    LAMINA_NEEDS_DECIMAL_COMMA(comma);
    EXPECT_EQ(whole_source(*language), expected);
  }
}

}  // namespace
}  // namespace lamina::testing
