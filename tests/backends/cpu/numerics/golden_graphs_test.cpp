// Whole graphs have the same bits as when the hashes below were written. In oneDNN's blocked kernels, f32 products with a small
// k are chains of fused multiply-adds in the order of k. On machines with other kernels the bits differ, and the test reports
// it. Products of integers are exact.
#include <gtest/gtest.h>

#include <cmath>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/numerics/bits.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, u8 = DataType::u8, s8 = DataType::s8;
constexpr const char* kOtherOrder = "this machine's products of f32 sum in another order";

uint64_t hash_of_run(const Graph& graph, double error) {
  const LibraryRun run = expect_library_matches_reference(graph, error);
  std::vector<OutputBits> outputs;
  for (const LogicalTensor& tensor : run.outputs) {
    const Buffer& data = run.buffers.at(tensor.id);
    const auto bytes = static_cast<size_t>(bytes_of(tensor.dtype, tensor.span()));
    outputs.push_back({1, std::string(reinterpret_cast<const char*>(data.data()), bytes)});
  }
  return hash_of(outputs);
}

// Whether this machine computes products [m, k] x [k, n] of f32 as such chains.
bool sums_in_the_order_of_k(int64_t m, int64_t k, int64_t n) {
  GraphBuilder g;
  const auto a = g.input(f32, {m, k}), b = g.input(f32, {k, n});
  const uint64_t c = g.op(OpKind::MatMul, {a, b});
  const LibraryRun run = expect_library_matches_reference(g.finish(), 1e-4);
  const auto values = [&](uint64_t id) { return reinterpret_cast<const float*>(run.buffers.at(id).data()); };
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      float sum = 0;
      for (int64_t i = 0; i < k; ++i) sum = std::fma(values(a)[row * k + i], values(b)[i * n + column], sum);
      if (sum != values(c)[row * n + column]) return false;
    }
  }
  return true;
}

TEST(GoldenGraphs, CausalAttention) {
  if (!sums_in_the_order_of_k(128, 64, 150) || !sums_in_the_order_of_k(128, 150, 64)) GTEST_SKIP() << kOtherOrder;
  GraphBuilder g;
  const auto q = g.input(f32, {2, 4, 150, 64}), k = g.input(f32, {2, 4, 150, 64}), v = g.input(f32, {2, 4, 150, 64});
  const auto scores = g.op(OpKind::Divide, {g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}}), g.number(8)});
  const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-2}}}, DataType::s32);
  const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
  const auto seen = g.op(OpKind::GreaterEqual, {row, column}, {}, DataType::boolean);
  const auto masked = g.op(OpKind::Select, {seen, scores, g.number(-1e30)}, {}, f32);
  g.op(OpKind::MatMul, {g.op(OpKind::SoftMax, {masked}, {{"axis", int64_t{-1}}}), v});
  EXPECT_EQ(hash_of_run(g.finish(), 1e-5), 269957557674866541u);
}

TEST(GoldenGraphs, GatedProducts) {
  if (!sums_in_the_order_of_k(32, 96, 200) || !sums_in_the_order_of_k(32, 200, 96)) GTEST_SKIP() << kOtherOrder;
  GraphBuilder g;
  const auto x = g.input(f32, {300, 96});
  const auto gate = g.op(OpKind::MatMul, {x, g.input(f32, {96, 200})}), up = g.op(OpKind::MatMul, {x, g.input(f32, {96, 200})});
  const auto gated = g.op(OpKind::Multiply, {g.op(OpKind::Multiply, {gate, g.op(OpKind::Sigmoid, {gate})}), up});
  g.op(OpKind::MatMul, {gated, g.input(f32, {200, 96})});
  EXPECT_EQ(hash_of_run(g.finish(), 1e-4), 5253391427572028744u);
}

uint64_t dequantized(GraphBuilder& g, DataType dtype, Dims shape, float scale, int64_t zero_point) {
  return g.op(OpKind::Dequantize, {g.input(dtype, std::move(shape))},
              {{"scales", std::vector<float>{scale}}, {"zps", std::vector<int64_t>{zero_point}}}, f32);
}

// The scale is a power of two, so the operations after the sum can round in one way only.
TEST(GoldenGraphs, IntegerProduct) {
  GraphBuilder g;
  const auto src = dequantized(g, u8, {150, 300}, 0.125f, 7), weights = dequantized(g, s8, {300, 70}, 0.0625f, 0);
  const auto dst = g.op(OpKind::ReLU, {g.op(OpKind::MatMul, {src, weights})});
  g.op(OpKind::Quantize, {dst}, {{"scales", std::vector<float>{8}}, {"zps", std::vector<int64_t>{3}}}, u8);
  EXPECT_EQ(hash_of_run(g.finish(), 0), 11485787167360064726u);
}

}  // namespace
}  // namespace lamina::testing
