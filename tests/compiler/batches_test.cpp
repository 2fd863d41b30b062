// Models that are executed with different batch sizes: each structure is compiled once for all batches. Symbols contain a hash
// of the structure, and the kernel cache uses them as keys, so the distinct symbols are the kernels that LLVM compiled.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "compiler/compile.h"
#include "compiler/compile_cache.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::Le;
using ::testing::SizeIs;
constexpr DataType f32 = DataType::f32;
constexpr int64_t kMaxBatch = 64;

Graph layer_norm(int64_t batch) {
  GraphBuilder g;
  const auto src = g.input(f32, {batch, 128, 768}), gamma = g.constant(f32, {768}), beta = g.constant(f32, {768});
  g.multi(OpKind::LayerNorm, {src, gamma, beta}, {{"keep_stats", false}}, {f32});
  return g.finish();
}

// gelu(src w1 + b1) w2 + b2
Graph mlp(int64_t batch) {
  GraphBuilder g;
  const auto src = g.input(f32, {batch, 256});
  const auto first = g.op(OpKind::MatMul, {src, g.constant(f32, {256, 512}), g.constant(f32, {512})});
  g.op(OpKind::MatMul, {g.op(OpKind::GELU, {first}), g.constant(f32, {512, 256}), g.constant(f32, {256})});
  return g.finish();
}

Graph attention(int64_t batch) {
  GraphBuilder g;
  const Dims qkv{batch, 12, 128, 64};
  const auto q = g.input(f32, qkv), k = g.input(f32, qkv), v = g.input(f32, qkv), mask = g.input(f32, {batch, 1, 1, 128});
  const auto products = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto scaled = g.op(OpKind::Multiply, {products, g.constant(f32, {1})});
  const auto weights = g.op(OpKind::SoftMax, {g.op(OpKind::Add, {scaled, mask})}, {{"axis", int64_t{-1}}});
  g.op(OpKind::MatMul, {weights, v});
  return g.finish();
}

Graph convolution(int64_t batch) {
  GraphBuilder g;
  const std::vector<int64_t> ones{1, 1};
  const auto sum = g.op(OpKind::Convolution, {g.input(f32, {batch, 64, 28, 28}), g.constant(f32, {64, 64, 3, 3})},
                        {{"strides", ones},
                         {"pads_begin", ones},
                         {"pads_end", ones},
                         {"dilations", ones},
                         {"data_format", std::string("NCX")},
                         {"weights_format", std::string("OIX")}});
  g.op(OpKind::ReLU, {sum});
  return g.finish();
}

// Returns the symbols compiled for batches of 1 to 64, starting with an empty cache of partitions but with cached code.
std::set<std::string> code_of_all_batches(const std::function<Graph(int64_t)>& model) {
  compiler::CompileCache::instance().clear();
  std::set<std::string> symbols;
  for (int64_t batch = 1; batch <= kMaxBatch; ++batch) {
    const auto partitions = partition_graph(model(batch), PartitionPolicy::fusion, cpu_backend());
    EXPECT_EQ(partitions.size(), 1u) << "batch " << batch;
    const auto compiled = compiler::compile_partition(partitions.at(0), cpu_backend());
    const size_t known = symbols.size();
    for (const std::string& kernel : compiled->info().kernels) {
      if (kernel.starts_with("lamina_")) symbols.insert(kernel);  // other kernels are library primitives
    }
    EXPECT_TRUE(symbols.size() > known || compiled->from_cache()) << "batch " << batch;
  }
  return symbols;
}

TEST(Batches, OfAnMlpShareTheirCode) { EXPECT_THAT(code_of_all_batches(mlp), SizeIs(1)); }
TEST(Batches, OfAttentionShareTheirCode) { EXPECT_THAT(code_of_all_batches(attention), SizeIs(1)); }

// The cores' own caches hold all tensors, or the last-level cache holds them, or a part of them, or nothing. What comes from
// farther is prefetched, and in the end streamed.
TEST(Batches, OfALayerNormShareTheirCodeButForWhereTheirTensorsAre) {
  EXPECT_THAT(code_of_all_batches(layer_norm), SizeIs(Le(4)));
}

// The same holds for the convolution's epilogue.
TEST(Batches, OfAConvolutionShareTheCodeOfWhatFollowsIt) { EXPECT_THAT(code_of_all_batches(convolution), SizeIs(Le(3))); }

}  // namespace
}  // namespace lamina::testing
