// Library ops as steps of a plan: tests the interface for primitive libraries with one that multiplies matrices in plain loops.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "backends/cpu/backend.h"
#include "compiler/compile.h"
#include "interface/status.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::compiler {
namespace {

using ::testing::ElementsAre;
using testing::GraphBuilder;
using ::testing::HasSubstr;
constexpr DataType f32 = DataType::f32;

// dst[m, n] = sum over k of src[m, k] * weights[k, n], computed in separate scratch memory.
class PlainProduct final : public cpu::Primitive {
 public:
  explicit PlainProduct(const kernel::LibraryStep& step)
      : m_(step.inputs[0].shape->at(0)), k_(step.inputs[0].shape->at(1)), n_(step.inputs[1].shape->at(1)) {}
  const std::string& name() const override { return name_; }
  size_t scratch_bytes() const override { return static_cast<size_t>(n_) * sizeof(float); }
  void run(std::span<void* const> args, void* scratch, const cpu::Executor&) const override {
    const auto* const src = static_cast<const float*>(args[0]);
    const auto* const weights = static_cast<const float*>(args[1]);
    auto* const row = static_cast<float*>(scratch);
    EXPECT_EQ(args[2], nullptr) << "the bias is left out";
    for (int64_t m = 0; m < m_; ++m) {
      std::fill_n(row, n_, 0.0f);
      for (int64_t k = 0; k < k_; ++k)
        for (int64_t n = 0; n < n_; ++n) row[n] += src[m * k_ + k] * weights[k * n_ + n];
      std::copy_n(row, n_, static_cast<float*>(args[3]) + m * n_);
    }
  }

 private:
  std::string name_ = "plain product";
  int64_t m_, k_, n_;
};

class PlainLibrary final : public cpu::PrimitiveLibrary {
 public:
  std::string why_unsupported(const Graph& graph, const Op& op) const override {
    if (op.kind != OpKind::MatMul) return "the plain library multiplies matrices only";
    return graph.tensor(op.inputs[0]).dtype == f32 ? "" : "the plain library multiplies f32 only";
  }
  std::unique_ptr<const cpu::Primitive> compile(const kernel::LibraryStep& step, const cpu::PrimitiveUse&) const override {
    return std::make_unique<PlainProduct>(step);
  }
};

// dst = LayerNorm(Abs(src) x weights).
Graph product_between_kernels(DataType dtype = f32) {
  GraphBuilder g;
  const auto src = g.op(OpKind::Abs, {g.input(dtype, {6, 16})}), weights = g.input(dtype, {16, 32});
  const auto product = g.op(OpKind::MatMul, {src, weights, kNoTensor});
  g.op(OpKind::LayerNorm, {product}, {{"use_affine", false}, {"keep_stats", false}});
  return g.finish();
}

std::vector<float> run(const Backend& backend, const Graph& graph, const std::vector<float>& src,
                       const std::vector<float>& weights, ExecutableInfo* info = nullptr) {
  const Subgraph subgraph{testing::with_strides(graph), graph.inputs(), graph.outputs()};
  const auto executable = compile_subgraph(subgraph, backend);
  std::vector<float> dst(6 * 32);
  const void* in[] = {src.data(), weights.data()};
  void* out[] = {dst.data()};
  executable->execute({}, in, out);
  if (info != nullptr) *info = executable->info();
  return dst;
}

TEST(LibraryStep, RunsBetweenKernelsAndPassesValuesThroughTheArena) {
  const Graph graph = product_between_kernels();
  std::vector<float> src(6 * 16), weights(16 * 32);
  for (size_t i = 0; i < src.size(); ++i) src[i] = std::sin(static_cast<float>(i));
  for (size_t i = 0; i < weights.size(); ++i) weights[i] = std::cos(static_cast<float>(3 * i));
  ExecutableInfo info;
  const auto backend = cpu::make_backend(std::make_shared<PlainLibrary>());
  const std::vector<float> actual = run(*backend, graph, src, weights, &info);
  const std::vector<float> expected = run(reference_backend(), graph, src, weights);
  for (size_t i = 0; i < actual.size(); ++i) EXPECT_NEAR(actual[i], expected[i], 1e-4) << i;
  ASSERT_EQ(info.kernels.size(), 3u);
  EXPECT_THAT(info.kernels[0], HasSubstr("lamina_abs_f32"));
  EXPECT_EQ(info.kernels[1], "plain product");
  EXPECT_THAT(info.kernels[2], HasSubstr("lamina_layer_norm_f32"));
  EXPECT_EQ(info.arena_bytes, 4u * (6 * 16 + 6 * 32));
  EXPECT_GE(info.workspace_bytes, info.arena_bytes + 32 * sizeof(float));
}

TEST(LibraryStep, JoinsWhatItStandsBetweenIntoOnePartition) {
  const auto backend = cpu::make_backend(std::make_shared<PlainLibrary>());
  const auto partitions = partition_graph(product_between_kernels(), PartitionPolicy::fusion, *backend);
  ASSERT_EQ(partitions.size(), 1u);
  EXPECT_TRUE(partitions[0].supported) << partitions[0].unsupported_reason;
  EXPECT_THAT(compile_partition(partitions[0], *backend)->info().kernels,
              ElementsAre(HasSubstr("abs"), "plain product", HasSubstr("layer_norm")));
}

TEST(LibraryStep, WhatTheLibraryRefusesIsRefusedWithItsReason) {
  const auto backend = cpu::make_backend(std::make_shared<PlainLibrary>());
  const auto partitions = partition_graph(product_between_kernels(DataType::bf16), PartitionPolicy::fusion, *backend);
  ASSERT_EQ(partitions.size(), 3u);
  EXPECT_FALSE(partitions[1].supported);
  EXPECT_EQ(partitions[1].unsupported_reason, "MatMul \"op1\": the plain library multiplies f32 only");
}

TEST(LibraryStep, WithoutALibraryNothingChanges) {
  const auto backend = cpu::make_backend(nullptr);
  const auto partitions = partition_graph(product_between_kernels(), PartitionPolicy::fusion, *backend);
  ASSERT_EQ(partitions.size(), 3u);
  EXPECT_EQ(partitions[1].unsupported_reason,
            "MatMul \"op1\": the cpu backend has no kernel for MatMul yet; the reference engine may have one");
}

}  // namespace
}  // namespace lamina::compiler
