// The promises about numbers: the same bits for any thread count, instruction set, row stride and batch.
#include <gtest/gtest.h>

#include <cstdlib>

#include "backends/cpu/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32;


Graph layer_norm(int64_t rows, int64_t size, int64_t row_stride, DataType dtype) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}, {row_stride, 1});
  const auto y = g.multi(OpKind::LayerNorm, {x, g.input(f32, {size}), g.input(f32, {size})}, {}, {dtype, f32, f32});
  g.op(OpKind::GELU, {y[0]});
  return g.finish();
}

Graph layer_norm_backward(int64_t rows, int64_t size, DataType dtype) {
  GraphBuilder g;
  const auto x = g.input(dtype, {rows, size}), dy = g.input(dtype, {rows, size});
  g.multi(OpKind::LayerNormBackward, {x, dy, g.input(f32, {rows}), g.input(f32, {rows}), g.input(f32, {size})}, {}, {dtype, f32, f32});
  return g.finish();
}

// Every graph input gets values that depend on the element's row-major position only, whatever its strides.
std::map<uint64_t, Buffer> inputs_by_position(const Graph& graph) {
  std::map<uint64_t, Buffer> buffers;
  for (const ValueIndex v : graph.inputs()) {
    const LogicalTensor& tensor = graph.tensor(v);
    Buffer data = buffer_for(tensor);
    const Dims& shape = *tensor.shape;
    for (int64_t i = 0; i < tensor.element_count(); ++i) {
      int64_t rest = i, offset = 0;
      for (size_t d = shape.size(); d-- > 0;) {
        offset += rest % shape[d] * tensor.strides[d];
        rest /= shape[d];
      }
      store_from_double(tensor.dtype, data.data(), offset, 1.5 + std::sin(static_cast<double>(i) * 0.7 + static_cast<double>(v)));
    }
    buffers[tensor.id] = std::move(data);
  }
  return buffers;
}

// All outputs as stored elements in row-major order.
std::vector<double> run(const Graph& graph, int threads, const char* isa) {
  setenv("LAMINA_MAX_ISA", isa, 1);
  auto buffers = inputs_by_position(graph);
  std::vector<double> all;
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{})) {
    const PortTensors ports = port_tensors(partition);
    const std::vector<LogicalTensor>&ins = ports.inputs, &outs = ports.outputs;
    const Subgraph subgraph = extract_subgraph(partition, ins, outs);
    std::vector<const void*> in;
    std::vector<void*> out;
    std::vector<Buffer> results;
    for (const LogicalTensor& tensor : ins) in.push_back(buffers.at(tensor.id).data());
    for (const LogicalTensor& tensor : outs) results.push_back(buffer_for(tensor));
    for (Buffer& buffer : results) out.push_back(buffer.data());
    ExecutionContext context;
    context.threads = threads;
    cpu_backend().compile(subgraph.graph, subgraph.inputs, subgraph.outputs)->execute(context, in, out);
    for (size_t o = 0; o < outs.size(); ++o) {
      const auto values = elements(outs[o], results[o]);
      all.insert(all.end(), values.begin(), values.end());
    }
  }
  unsetenv("LAMINA_MAX_ISA");
  return all;
}

class SameBits : public ::testing::TestWithParam<DataType> {};

TEST_P(SameBits, ForAnyThreadCountAndInstructionSet) {
  for (const int64_t size : {int64_t{61}, int64_t{768}, int64_t{5000}}) {
    for (const bool backward : {false, true}) {
      const Graph graph = backward ? layer_norm_backward(130, size, GetParam()) : layer_norm(9, size, size, GetParam());
      const std::vector<double> expected = run(graph, 1, "avx512");
      for (const int threads : {2, 3, 8}) EXPECT_EQ(run(graph, threads, "avx512"), expected) << threads << " threads, N = " << size;
      EXPECT_EQ(run(graph, 2, "avx2"), expected) << "avx2, N = " << size;
      EXPECT_EQ(run(graph, 2, "generic"), expected) << "generic, N = " << size;
    }
  }
}

// Long rows that are fewer than threads are divided among them.
TEST_P(SameBits, ForLongRowsThatThreadsShare) {
  constexpr int64_t kSize = 5 * 4096 + 77;
  const auto softmax = [](int64_t rows, DataType dtype) {
    GraphBuilder g;
    g.op(OpKind::SoftMax, {g.input(dtype, {rows, kSize})}, {{"axis", int64_t{-1}}});
    return g.finish();
  };
  for (const int64_t rows : {1, 3, 70}) {
    for (const Graph& graph : {layer_norm(rows, kSize, kSize, GetParam()), layer_norm_backward(rows, kSize, GetParam()), softmax(rows, GetParam())}) {
      const std::vector<double> expected = run(graph, 1, "avx512");
      for (const int threads : {2, 4, 7}) {
        const std::vector<double> shared = run(graph, threads, "avx512");
        const auto differs = std::mismatch(shared.begin(), shared.end(), expected.begin());
        EXPECT_TRUE(differs.first == shared.end()) << name_of(graph.ops().front().kind) << ", " << threads << " threads, " << rows << " rows: element "
            << differs.first - shared.begin() << " of " << shared.size() << " is " << *differs.first << ", with one thread " << *differs.second;
      }
      EXPECT_EQ(run(graph, 4, "generic"), expected) << rows << " rows";
    }
  }
}

TEST_P(SameBits, ForAnyRowStride) {
  EXPECT_EQ(run(layer_norm(50, 300, 300, GetParam()), 2, "avx512"), run(layer_norm(50, 300, 317, GetParam()), 2, "avx512"));
}

// Rows 0..6 of a batch of 7 and of a batch of 300 are the same rows here, so their results must be the same bits.
TEST_P(SameBits, ForAnyBatch) {
  const std::vector<double> few = run(layer_norm(7, 300, 300, GetParam()), 1, "avx512");
  const std::vector<double> many = run(layer_norm(300, 300, 300, GetParam()), 2, "avx512");
  // outputs in op order: mean [rows], variance [rows], dst [rows, 300]
  for (size_t i = 0; i < 7; ++i) {
    EXPECT_EQ(few[i], many[i]);
    EXPECT_EQ(few[7 + i], many[300 + i]);
  }
  for (size_t i = 0; i < 7 * 300; ++i) ASSERT_EQ(few[14 + i], many[600 + i]) << "element " << i;
}

INSTANTIATE_TEST_SUITE_P(Types, SameBits, ::testing::Values(f32, DataType::bf16, DataType::f16));

// mean / std = 1e6: E[x^2] - E[x]^2 would have no digit left.
TEST(Accuracy, ALargeMeanCostsNothing) {
  for (const int64_t size : {int64_t{768}, int64_t{100000}}) {
    GraphBuilder g;
    const auto x = g.input(f32, {2, size});
    g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}}, {f32, f32, f32});
    const Graph graph = g.finish();
    Buffer data = buffer_for(graph.tensor(0));
    for (int64_t i = 0; i < 2 * size; ++i) store_from_double(f32, data.data(), i, 1e6 + std::sin(static_cast<double>(i)) * 1.4);
    expect_cpu_matches_reference(graph, 2, 1, {{graph.tensor(0).id, data}});
  }
}

TEST(Accuracy, OneOutlierInFrontCostsNothing) {
  GraphBuilder g;
  const auto x = g.input(f32, {1, 100000});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"keep_stats", false}}, {f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int64_t i = 0; i < 100000; ++i) store_from_double(f32, data.data(), i, i == 0 ? 1e6 : 0.3);
  expect_cpu_matches_reference(graph, 2, 1, {{graph.tensor(0).id, data}});
}

TEST(Accuracy, NanAndInfinitySpoilTheirOwnRowOnly) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 70});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}}, {f32, f32, f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int64_t i = 0; i < 280; ++i) store_from_double(f32, data.data(), i, i == 75 ? NAN : i == 140 ? INFINITY : std::cos(static_cast<double>(i)));
  expect_cpu_matches_reference(graph, 4, 1, {{graph.tensor(0).id, data}});
}

}  // namespace
}  // namespace lamina::testing
