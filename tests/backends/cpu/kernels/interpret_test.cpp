// The kernel-IR interpreter against the CPU's machine code, with values of every magnitude and rows of several blocks. The
// other CPU tests compare with it too (compare_with_cpu.cpp).
#include <gtest/gtest.h>

#include <array>
#include <limits>

#include "backends/cpu/support/cpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;

// The reference is not compared, so the values may be of any kind.
void expect_same_bits(const Graph& graph, const std::map<uint64_t, Buffer>& given = {}) {
  std::mt19937 random(7);
  std::map<uint64_t, Buffer> buffers = given;
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{})) {
    ASSERT_TRUE(partition.supported) << partition.unsupported_reason;
    const PortTensors ports = port_tensors(partition);
    const Subgraph subgraph = extract_subgraph(partition, ports.inputs, ports.outputs);
    const PortData inputs = inputs_of(partition, ports, buffers, random);
    std::vector<Buffer> outputs = outputs_for(ports);
    run_on_host(cpu_backend(), subgraph, inputs, outputs);
    compare_with_cpu({subgraph, ports, inputs.buffers, outputs, 0, std::numeric_limits<int64_t>::max()});
    for (size_t o = 0; o < outputs.size(); ++o) buffers[ports.outputs[o].id] = std::move(outputs[o]);
  }
}

// Values over many magnitudes and both signs, edge values first.
Buffer wide_values(const LogicalTensor& tensor) {
  Buffer data = buffer_for(tensor);
  const std::array<double, 10> edges = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e-40, -1e-40, 3e38};
  std::mt19937 random(3);
  std::uniform_real_distribution<double> exponent(-45, 10), sign(-1, 1);
  for (int64_t i = 0; i < tensor.span(); ++i) {
    const double value = static_cast<size_t>(i) < edges.size() ? edges[static_cast<size_t>(i)]
                                                               : std::copysign(std::exp2(exponent(random)), sign(random));
    store_from_double(tensor.dtype, data.data(), i, value);
  }
  return data;
}

class InterpretedKernels : public ::testing::TestWithParam<DataType> {
 protected:
  DataType weights() const { return GetParam() == f64 ? f64 : f32; }
};

TEST_P(InterpretedKernels, ElementaryFunctions) {
  const std::vector<std::pair<OpKind, Attributes>> cases = {{OpKind::Exp, {}},
                                                            {OpKind::Log, {}},
                                                            {OpKind::Tanh, {}},
                                                            {OpKind::Sigmoid, {}},
                                                            {OpKind::Sin, {}},
                                                            {OpKind::Cos, {}},
                                                            {OpKind::Log1p, {}},
                                                            {OpKind::Expm1, {}},
                                                            {OpKind::Erfc, {}},
                                                            {OpKind::Sign, {}},
                                                            {OpKind::Trunc, {}},
                                                            {OpKind::GELU, {}},
                                                            {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}},
                                                            {OpKind::Elu, {{"alpha", 0.7F}}},
                                                            {OpKind::SoftPlus, {{"beta", 2.0F}}},
                                                            {OpKind::Mish, {}},
                                                            {OpKind::Round, {}},
                                                            {OpKind::Sqrt, {}},
                                                            {OpKind::Abs, {}},
                                                            {OpKind::Reciprocal, {}},
                                                            {OpKind::HardSwish, {}},
                                                            {OpKind::Pow, {{"beta", 0.5F}}},
                                                            {OpKind::Pow, {{"beta", -0.5F}}},
                                                            {OpKind::Pow, {{"beta", 3.0F}}},
                                                            {OpKind::Pow, {{"beta", 2.7F}}},
                                                            {OpKind::Pow, {{"beta", -5.0F}}},
                                                            {OpKind::Pow, {{"beta", 0.0F}}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), {4000});
    g.op(kind, {x}, attributes);
    SCOPED_TRACE(name_of(kind));
    const Graph graph = g.finish();
    expect_same_bits(graph, {{x, wide_values(graph.tensor(0))}});
  }
}

TEST_P(InterpretedKernels, AnglesOfPointsAndRemainders) {
  for (const OpKind kind : {OpKind::Atan2, OpKind::Fmod}) {
    GraphBuilder g;
    const auto y = g.input(GetParam(), {200, 1}), x = g.input(GetParam(), {200});
    g.op(kind, {y, x});
    const Graph graph = g.finish();
    expect_same_bits(graph, {{y, wide_values(graph.tensor(0))}, {x, wide_values(graph.tensor(1))}});
  }
}

TEST_P(InterpretedKernels, NormsForwardAndBackward) {
  for (const Dims& shape : {Dims{3, 1}, Dims{5, 129}, Dims{2, 4097}, Dims{131, 100}, Dims{1, 9000}}) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), shape);
    const auto gamma = g.input(weights(), {shape.back()});
    g.multi(OpKind::LayerNorm, {x, gamma, g.input(weights(), {shape.back()})}, {}, {GetParam(), weights(), weights()});
    expect_same_bits(g.finish());

    GraphBuilder b;
    const auto src = b.input(GetParam(), shape), dy = b.input(GetParam(), shape);
    const auto mean = b.input(weights(), {shape[0]}), variance = b.input(weights(), {shape[0]});
    b.multi(OpKind::LayerNormBackward, {src, dy, mean, variance, b.input(weights(), {shape.back()})}, {},
            {GetParam(), weights(), weights()});
    expect_same_bits(b.finish());
  }
}

TEST_P(InterpretedKernels, GroupNormOverDimsThatDoNotMerge) {
  for (const auto& [format, shape] :
       std::vector<std::pair<std::string, Dims>>{{"NCX", {2, 6, 50, 70}}, {"NXC", {2, 50, 70, 6}}}) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), shape);
    g.multi(OpKind::GroupNorm, {x, g.input(weights(), {6}), g.input(weights(), {6})},
            {{"groups", int64_t{3}}, {"data_format", format}}, {GetParam(), weights(), weights()});
    expect_same_bits(g.finish());
  }
}

// Blocks of several runs, blocks of one run, and several blocks per run: interpreter and machine sum in the same order.
TEST_P(InterpretedKernels, RowsInRunsOfAnyLength) {
  for (const int64_t run : {2, 63, 65, 700, 2049, 4097, 9000}) {
    const Dims shape{2 * std::max<int64_t>(2, 9000 / run), 3, run};
    SCOPED_TRACE(describe(shape));
    GraphBuilder g;
    const auto x = g.input(GetParam(), shape);
    const std::vector<uint64_t> inputs{x, g.input(weights(), {3}), g.input(weights(), {3}), g.input(weights(), {3}),
                                       g.input(weights(), {3})};
    g.multi(OpKind::BatchNormForwardTraining, inputs, {{"epsilon", 0.01F}, {"data_format", std::string("NCX")}},
            {GetParam(), weights(), weights(), weights(), weights()});
    expect_same_bits(g.finish());
    for (const OpKind kind : {OpKind::ReduceSum, OpKind::ReduceMax, OpKind::ReduceProd}) {
      GraphBuilder r;
      r.op(kind, {r.input(GetParam(), shape)}, {{"axes", std::vector<int64_t>{0, 2}}});
      expect_same_bits(r.finish());
    }
  }
}

// Sums over segments of any length, of several dims, and with gaps between them.
TEST_P(InterpretedKernels, SumsOfSegments) {
  const std::vector<std::pair<Dims, Dims>> shapes = {{{3, 6, 64}, {}},
                                                     {{3, 6, 65}, {}},
                                                     {{2, 6, 700}, {}},
                                                     {{1, 6, 4097}, {}},
                                                     {{2, 6, 9000}, {}},
                                                     {{70, 2, 8, 9}, {}},
                                                     {{2, 6, 9, 70}, {6000, 900, 80, 1}},
                                                     {{2, 6, 9, 70}, {3780, 70, 420, 1}}};
  for (const auto& [shape, strides] : shapes) {
    for (const bool use_stats : {false, true}) {
      SCOPED_TRACE(join(describe(shape), " by ", describe(strides), " use_stats ", use_stats));
      GraphBuilder g;
      std::vector<uint64_t> inputs{g.input(GetParam(), shape, strides), g.input(GetParam(), shape, strides)};
      const Dims groups{shape[0], 2};
      if (use_stats) inputs.insert(inputs.end(), {g.input(weights(), groups), g.input(weights(), groups)});
      inputs.push_back(g.input(weights(), {shape[1]}));
      g.multi(OpKind::GroupNormBackward, inputs,
              {{"groups", int64_t{2}}, {"data_format", std::string("NCX")}, {"use_stats", use_stats}},
              {GetParam(), weights(), weights()});
      expect_same_bits(g.finish());
    }
  }
}

TEST_P(InterpretedKernels, SoftMaxAndReductionsAlongEitherAxis) {
  for (const int64_t axis : {int64_t{0}, int64_t{-1}}) {
    for (const OpKind kind : {OpKind::SoftMax, OpKind::LogSoftmax}) {
      GraphBuilder g;
      g.op(kind, {g.input(GetParam(), {70, 90})}, {{"axis", axis}});
      expect_same_bits(g.finish());
    }
    for (const OpKind kind :
         {OpKind::ReduceL1, OpKind::ReduceL2, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin, OpKind::ReduceProd}) {
      GraphBuilder g;
      g.op(kind, {g.input(GetParam(), {70, 90})}, {{"axes", std::vector<int64_t>{axis}}});
      expect_same_bits(g.finish());
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, InterpretedKernels, ::testing::Values(f32, bf16, f16, f64));

}  // namespace
}  // namespace lamina::testing
