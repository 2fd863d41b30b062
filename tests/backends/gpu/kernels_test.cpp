// Generated OpenCL kernels of every family and every kind of schedule, run on the available device (PoCL on a machine without a
// GPU). The results are compared with the reference backend and, without reductions, bit by bit with the CPU backend. This
// program also runs the CPU's tests of op chains (compare_with_cpu.cpp): one CPU kernel is one GPU kernel, or two with column
// sums.
#include <gtest/gtest.h>

#include <thread>

#include "backends/cpu/support/index_buffers.h"
#include "backends/gpu/gpu_check.h"
#include "backends/gpu/gpu_kernels.h"
#include "support/graph_builder.h"
#include "support/index_error.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, bf16 = DataType::bf16, f16 = DataType::f16, f64 = DataType::f64;
using Axes = std::vector<int64_t>;

DataType statistics_type(DataType src) { return src == f64 ? f64 : f32; }

// Expects one partition with one kernel, or two if columns are summed. A split kernel has one launch per phase.
void expect_one_kernel(const GpuResult& result, const char* schedule = nullptr) {
  ASSERT_EQ(result.partitions.size(), 1U);
  const ExecutableInfo& info = result.partitions[0];
  ASSERT_EQ(info.schedules.size(), 1U);
  const bool columns = info.schedules[0].find("columns") != std::string::npos;
  const bool split = info.schedules[0].starts_with("split");
  EXPECT_TRUE(split || info.kernels.size() == (columns ? 2U : 1U)) << info.kernels.size();
  if (schedule != nullptr) {
    EXPECT_EQ(info.schedules[0], schedule);
  }
}

Graph layer_norm(DataType dtype, const Dims& shape, Dims strides = {}) {
  GraphBuilder g;
  const auto x = g.input(dtype, shape, std::move(strides));
  const DataType weights = statistics_type(dtype);
  g.multi(OpKind::LayerNorm, {x, g.input(weights, {shape.back()}), g.input(weights, {shape.back()})}, {},
          {dtype, weights, weights});
  return g.finish();
}

Graph layer_norm_backward(DataType dtype, const Dims& shape) {
  GraphBuilder g;
  const auto x = g.input(dtype, shape), dy = g.input(dtype, shape);
  const DataType weights = statistics_type(dtype);
  const Dims rows(shape.begin(), shape.end() - 1);
  g.multi(OpKind::LayerNormBackward, {x, dy, g.input(weights, rows), g.input(weights, rows), g.input(weights, {shape.back()})},
          {}, {dtype, weights, weights});
  return g.finish();
}

class GpuNorms : public ::testing::TestWithParam<DataType> {};

TEST_P(GpuNorms, LayerNormForAllLengthsOfRows) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& shape : {Dims{4, 1}, Dims{3, 7}, Dims{150, 8}, Dims{70, 64}, Dims{2, 3, 129}, Dims{9, 1000}, Dims{3, 4097},
                            Dims{2, 9000}, Dims{2, 40000}}) {
    SCOPED_TRACE(describe(shape));
    expect_one_kernel(expect_gpu_is_right(*gpu, layer_norm(GetParam(), shape), shape.back() > 10000 ? 16 : 4));
  }
}

TEST_P(GpuNorms, LayerNormBackwardForAllLengthsOfRows) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& shape : {Dims{4, 1}, Dims{65, 7}, Dims{150, 8}, Dims{70, 64}, Dims{2, 33, 129}, Dims{41, 1000},
                            Dims{17, 4097}, Dims{3, 16384}, Dims{10, 40000}}) {
    SCOPED_TRACE(describe(shape));
    expect_one_kernel(expect_gpu_is_right(*gpu, layer_norm_backward(GetParam(), shape), 64));
  }
}

TEST_P(GpuNorms, LayerNormBackwardThatRecomputesStatistics) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& shape : {Dims{5, 60}, Dims{3, 5000}}) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), shape), dy = g.input(GetParam(), shape);
    g.multi(OpKind::LayerNormBackward, {x, dy, g.input(statistics_type(GetParam()), {shape.back()})},
            {{"use_stats", false}, {"epsilon", 0.1F}}, {GetParam()});
    expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 16));
  }
}

TEST_P(GpuNorms, RmsNormSoftMaxAndTheirGradientsAlongBothAxes) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& shape : {Dims{70, 64}, Dims{6, 1001}}) {
    GraphBuilder r;
    const auto src = r.input(GetParam(), shape);
    r.op(OpKind::RMSNorm, {src, r.input(statistics_type(GetParam()), {shape.back()})});
    expect_one_kernel(expect_gpu_is_right(*gpu, r.finish(), 8));
    for (const OpKind kind : {OpKind::SoftMax, OpKind::LogSoftmax, OpKind::SoftMaxBackward, OpKind::LogSoftmaxBackward}) {
      for (const int64_t axis : {int64_t{0}, int64_t{-1}}) {
        GraphBuilder g;
        const auto x = g.input(GetParam(), shape);
        std::vector<uint64_t> inputs = {x};
        if (kind == OpKind::SoftMaxBackward || kind == OpKind::LogSoftmaxBackward) inputs.push_back(g.input(GetParam(), shape));
        g.op(kind, inputs, {{"axis", axis}});
        SCOPED_TRACE(join(name_of(kind), " along ", axis));
        expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 64), axis == 0 ? "transposed" : nullptr);
      }
    }
  }
}

TEST_P(GpuNorms, EveryReduction) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const OpKind kind :
       {OpKind::ReduceL1, OpKind::ReduceL2, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin, OpKind::ReduceSum}) {
    for (const Axes& axes : {Axes{0}, Axes{1}, Axes{-1}, Axes{0, 2}}) {
      GraphBuilder g;
      g.op(kind, {g.input(GetParam(), {6, 35, 50})}, {{"axes", axes}, {"keep_dims", axes.size() == 1}});
      SCOPED_TRACE(join(name_of(kind), " over ", describe(axes)));
      expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 64));
    }
  }
}

TEST_P(GpuNorms, GroupNormInBothFormats) {
  LAMINA_GPU_OR_SKIP(gpu);
  const DataType weights = statistics_type(GetParam());
  for (const auto& [format, shape] : std::vector<std::pair<std::string, Dims>>{{"NCX", {2, 6, 5, 8}}, {"NXC", {2, 5, 7, 12}}}) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), shape);
    const int64_t channels = format == "NCX" ? 6 : 12;
    const auto y = g.multi(OpKind::GroupNorm, {x, g.input(weights, {channels}), g.input(weights, {channels})},
                           {{"groups", int64_t{3}}, {"data_format", format}}, {GetParam(), weights, weights});
    g.op(OpKind::ReLU, {y[0]});
    expect_one_kernel(expect_gpu_is_right(*gpu, g.finish()));
  }
}

TEST_P(GpuNorms, ElementaryFunctionsHaveTheCpusBits) {
  LAMINA_GPU_OR_SKIP(gpu);
  const std::vector<std::pair<OpKind, Attributes>> cases = {{OpKind::Abs, {}},
                                                            {OpKind::Clamp, {{"min", -1.0F}, {"max", 1.0F}}},
                                                            {OpKind::Elu, {{"alpha", 0.7F}}},
                                                            {OpKind::Exp, {}},
                                                            {OpKind::GELU, {}},
                                                            {OpKind::GELU, {{"mode", std::string("gelu_tanh")}}},
                                                            {OpKind::HardSigmoid, {{"alpha", 0.2F}, {"beta", 0.5F}}},
                                                            {OpKind::HardSwish, {}},
                                                            {OpKind::LeakyReLU, {{"alpha", 0.1F}}},
                                                            {OpKind::Mish, {}},
                                                            {OpKind::ReLU, {}},
                                                            {OpKind::Round, {}},
                                                            {OpKind::Sigmoid, {}},
                                                            {OpKind::Sin, {}},
                                                            {OpKind::Cos, {}},
                                                            {OpKind::Log1p, {}},
                                                            {OpKind::Expm1, {}},
                                                            {OpKind::Erfc, {}},
                                                            {OpKind::Sign, {}},
                                                            {OpKind::Trunc, {}},
                                                            {OpKind::SoftPlus, {{"beta", 2.0F}}},
                                                            {OpKind::Square, {}},
                                                            {OpKind::Tanh, {}},
                                                            {OpKind::Pow, {{"beta", 2.0F}}},
                                                            {OpKind::Pow, {{"beta", -1.0F}}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    g.op(kind, {g.input(GetParam(), {3, 5, 45})}, attributes);
    SCOPED_TRACE(name_of(kind));
    expect_one_kernel(expect_gpu_is_right(*gpu, g.finish()), "flat");
  }
  for (const float beta : {0.5F, -0.5F, 2.7F, -3.5F}) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), {400});
    g.op(OpKind::Pow, {x}, {{"beta", beta}});
    const Graph graph = g.finish();
    Buffer data = buffer_for(graph.tensor(0));
    for (int64_t i = 0; i < 400; ++i) store_from_double(GetParam(), data.data(), i, 0.01 + static_cast<double>(i) * 0.05);
    expect_gpu_is_right(*gpu, graph, 16, 1, {{x, data}});
  }
}

TEST_P(GpuNorms, GradientsOfElementaryFunctions) {
  LAMINA_GPU_OR_SKIP(gpu);
  const std::vector<std::pair<OpKind, Attributes>> cases = {{OpKind::AbsBackward, {}},
                                                            {OpKind::ClampBackward, {{"min", -1.0F}, {"max", 1.0F}}},
                                                            {OpKind::EluBackward, {{"alpha", 0.7F}}},
                                                            {OpKind::GELUBackward, {}},
                                                            {OpKind::GELUBackward, {{"mode", std::string("gelu_tanh")}}},
                                                            {OpKind::HardSwishBackward, {}},
                                                            {OpKind::MishBackward, {}},
                                                            {OpKind::ReLUBackward, {}},
                                                            {OpKind::SigmoidBackward, {}},
                                                            {OpKind::SoftPlusBackward, {}},
                                                            {OpKind::TanhBackward, {}}};
  for (const auto& [kind, attributes] : cases) {
    GraphBuilder g;
    const auto x = g.input(GetParam(), {2, 150}), dy = g.input(GetParam(), {2, 150});
    g.op(kind, {x, dy}, attributes);
    SCOPED_TRACE(name_of(kind));
    expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 8));
  }
}

TEST_P(GpuNorms, BinariesBroadcast) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const OpKind kind :
       {OpKind::Add, OpKind::Divide, OpKind::Maximum, OpKind::SquaredDifference, OpKind::Atan2, OpKind::Fmod}) {
    for (const Dims& other : {Dims{3, 4, 32}, Dims{32}, Dims{4, 1}, Dims{3, 1, 1}, Dims{1, 1, 1}}) {
      GraphBuilder g;
      const auto x = g.input(GetParam(), {3, 4, 32});
      g.op(kind, {x, g.input(GetParam(), other)});
      expect_one_kernel(expect_gpu_is_right(*gpu, g.finish()));
    }
  }
}

TEST_P(GpuNorms, StridedAndPermuted) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const auto x = g.input(GetParam(), {4, 6, 10}, {100, 13, 1}), y = g.input(GetParam(), {4, 6, 10}, {1, 4, 24});
  g.op(OpKind::StaticTranspose, {g.op(OpKind::Add, {x, y})}, {{"order", Axes{2, 0, 1}}});
  expect_one_kernel(expect_gpu_is_right(*gpu, g.finish()));
}

INSTANTIATE_TEST_SUITE_P(Types, GpuNorms, ::testing::Values(f32, bf16, f16, f64),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(GpuSchedules, AreChosenByTheLengthOfTheRow) {
  LAMINA_GPU_OR_SKIP(gpu);
  const auto schedule_of = [&](const Graph& graph) {
    return expect_gpu_is_right(*gpu, graph, 64).partitions.at(0).schedules.at(0);
  };
  EXPECT_EQ(schedule_of(layer_norm(f32, {9, 16})), "packed");
  EXPECT_EQ(schedule_of(layer_norm(f32, {9, 256})), "packed");
  EXPECT_EQ(schedule_of(layer_norm(f32, {9, 512})), "warp");
  EXPECT_EQ(schedule_of(layer_norm(f32, {9, 2048})), "block");
  EXPECT_EQ(schedule_of(layer_norm_backward(f32, {40, 16})), "packed columns");
  EXPECT_EQ(schedule_of(layer_norm_backward(f32, {40, 512})), "warp columns");
  EXPECT_EQ(schedule_of(layer_norm_backward(f32, {40, 1024})), "block columns");
}

// ---- elements of four bits, two a byte

TEST(GpuFourBits, AreReadWhereverARowStarts) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType narrow : {DataType::s4, DataType::u4}) {
    for (const DataType dtype : {f32, bf16, f16}) {
      for (const Dims& group : {Dims{1, 1, 9}, Dims{1, 5, 1}, Dims{2, 1, 3}}) {
        SCOPED_TRACE(join(name_of(narrow), " to ", name_of(dtype), " by groups of ", describe(group)));
        GraphBuilder g;
        const Dims scales{6 / group[0], 5 / group[1], 9 / group[2]};
        const Attributes attributes{{"qtype", std::string("per_group")}, {"group_shape", Axes(group.begin(), group.end())}};
        g.op(OpKind::DynamicDequantize, {g.input(narrow, {6, 5, 9}), g.input(dtype, scales), g.input(narrow, scales)},
             attributes, dtype);
        expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 256), "flat");
      }
    }
  }
}

TEST(GpuFourBits, AreNormalisedInOneKernel) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& strides : {Dims{}, Dims{1, 7}}) {
    GraphBuilder g;
    const auto x = g.op(OpKind::DynamicDequantize, {g.input(DataType::s4, {7, 201}, strides), g.input(f32, {1})},
                        {{"qtype", std::string("per_tensor")}}, f32);
    g.op(OpKind::LayerNorm, {x, g.input(f32, {201}), g.input(f32, {201})}, {{"keep_stats", false}});
    expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 16));
  }
}

// ---- few long rows

// One row counts as few on every device that runs two work-groups concurrently.
TEST(GpuSplit, OneLongRowIsSharedByTeams) {
  LAMINA_GPU_OR_SKIP(gpu);
  const bool can_split = std::thread::hardware_concurrency() > 1;  // PoCL's number of compute units
  const bool has_clusters = test_device(why_no_gpu)->limits().cluster_groups > 1;
  const auto expect_split = [&](const Graph& graph, double factor, const std::string& schedule) {
    const ExecutableInfo info = expect_gpu_is_right(*gpu, graph, factor).partitions.at(0);
    const std::string name = info.schedules.at(0);
    const bool in_cluster = has_clusters && name == "cluster" + schedule.substr(5);
    EXPECT_TRUE(!can_split || name == schedule || in_cluster) << name << "\n" << info.kernel_texts.at(0);
  };
  for (const DataType dtype : {f32, bf16, f64}) {
    SCOPED_TRACE(name_of(dtype));
    for (const int64_t size : dtype == f32 ? std::vector<int64_t>{16385, 100000} : std::vector<int64_t>{40000}) {
      expect_split(layer_norm(dtype, {1, size}), 16, "split");
      expect_split(layer_norm_backward(dtype, {1, size}), 64, "split");  // with one row, its column sums are plain stores
      expect_split(layer_norm_backward(dtype, {7, size}), 64, "split columns");
      GraphBuilder r;
      const auto x = r.input(dtype, {1, size}), dy = r.input(dtype, {1, size});
      r.multi(OpKind::LayerNormBackward, {x, dy, r.input(statistics_type(dtype), {size})},
              {{"use_stats", false}, {"epsilon", 0.1F}}, {dtype});
      expect_split(r.finish(), 16, "split");
      for (const OpKind kind : {OpKind::SoftMax, OpKind::LogSoftmax, OpKind::ReduceMax, OpKind::ReduceSum}) {
        GraphBuilder g;
        const bool reduces = kind == OpKind::ReduceMax || kind == OpKind::ReduceSum;
        g.op(kind, {g.input(dtype, {1, size})}, reduces ? Attributes{{"axes", Axes{1}}} : Attributes{{"axis", int64_t{1}}});
        expect_split(g.finish(), 256, "split");
      }
    }
    GraphBuilder g;
    g.op(OpKind::SoftMax, {g.input(dtype, {3000, 8})}, {{"axis", int64_t{0}}});
    expect_split(g.finish(), 64, "split");
  }
}

// ---- guarantees about numbers

TEST(GpuNumbers, ALargeMeanCostsNothing) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t size : {int64_t{768}, int64_t{100000}}) {
    GraphBuilder g;
    const auto x = g.input(f32, {2, size});
    g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}}, {f32, f32, f32});
    const Graph graph = g.finish();
    Buffer data = buffer_for(graph.tensor(0));
    for (int64_t i = 0; i < 2 * size; ++i) store_from_double(f32, data.data(), i, 1e6 + std::sin(static_cast<double>(i)) * 1.4);
    expect_gpu_is_right(*gpu, graph, 2, 1, {{x, data}});
  }
}

TEST(GpuNumbers, OneOutlierInFrontCostsNothing) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const auto x = g.input(f32, {1, 100000});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}, {"keep_stats", false}}, {f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int64_t i = 0; i < 100000; ++i) store_from_double(f32, data.data(), i, i == 0 ? 1e6 : 0.3);
  expect_gpu_is_right(*gpu, graph, 2, 1, {{x, data}});
}

TEST(GpuNumbers, NanAndInfinitySpoilTheirOwnRowOnly) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const auto x = g.input(f32, {4, 70});
  g.multi(OpKind::LayerNorm, {x}, {{"use_affine", false}}, {f32, f32, f32});
  const Graph graph = g.finish();
  Buffer data = buffer_for(graph.tensor(0));
  for (int64_t i = 0; i < 280; ++i)
    store_from_double(f32, data.data(), i, i == 75 ? NAN : i == 140 ? INFINITY : std::cos(static_cast<double>(i)));
  expect_gpu_is_right(*gpu, graph, 4, 1, {{x, data}});
}

// Returns the row-major elements of each output of LayerNorm; the values of src depend only on the position.
std::map<uint64_t, std::vector<double>> norm_outputs(const Backend& gpu, int64_t rows, int64_t size, int64_t row_stride) {
  const Graph graph = layer_norm(bf16, {rows, size}, {row_stride, 1});
  Buffer data = buffer_for(graph.tensor(0));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < size; ++i)
      store_from_double(bf16, data.data(), row * row_stride + i, 1.5 + std::sin(static_cast<double>(row * size + i) * 0.7));
  }
  const GpuResult result = expect_gpu_is_right(gpu, graph, 4, 1, {{graph.tensor(0).id, data}});
  std::map<uint64_t, std::vector<double>> outputs;
  for (const ValueIndex v : graph.outputs()) {
    LogicalTensor tensor = graph.tensor(v);
    if (!tensor.has_strides()) tensor.strides = dense_strides(*tensor.shape);
    outputs[tensor.id] = elements(tensor, result.buffers.at(tensor.id));
  }
  return outputs;
}

TEST(GpuNumbers, ARowDependsOnItselfAloneAndOnNoStride) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t size : {int64_t{24}, int64_t{300}, int64_t{2000}, int64_t{20000}, int64_t{70000}}) {
    const auto few = norm_outputs(*gpu, 3, size, size), many = norm_outputs(*gpu, 11, size, size),
               strided = norm_outputs(*gpu, 3, size, size + 13);
    EXPECT_EQ(few, strided) << size;
    EXPECT_EQ(few, norm_outputs(*gpu, 3, size, size)) << size;
    const auto one = norm_outputs(*gpu, 1, size, size);  // may be split
    for (const auto* fewer : {&few, &one}) {
      for (const auto& [id, values] : *fewer) {
        for (size_t i = 0; i < values.size(); ++i)
          ASSERT_EQ(values[i], many.at(id)[i]) << "tensor " << id << " element " << i << " of " << size;
      }
    }
  }
}

TEST(GpuNumbers, NoRowsGiveColumnSumsOfZero) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_gpu_is_right(*gpu, layer_norm_backward(f32, {0, 24}));
}

// The CPU guarantees bits; the GPU guarantees 2 ULP of f32 from the CPU. The statistics show the largest difference.
TEST(GpuNumbers, StatisticsAreWithinTwoUlpOfTheCpus) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t size : {int64_t{61}, int64_t{768}, int64_t{5000}, int64_t{40000}}) {
    const Graph graph = layer_norm(f32, {5, size});
    const Partition partition = partition_graph(graph, PartitionPolicy::fusion, CpuCapabilities{}).at(0);
    const PortTensors ports = port_tensors(partition);
    const Subgraph subgraph = extract_subgraph(partition, ports.inputs, ports.outputs);
    std::mt19937 random(5);
    std::map<uint64_t, Buffer> data;
    const PortData inputs = inputs_of(partition, ports, data, random);
    std::vector<Buffer> on_gpu = outputs_for(ports), on_cpu = outputs_for(ports);
    run_on_gpu(*gpu, subgraph, ports.inputs, inputs.buffers, on_gpu);
    run_on_host(cpu_backend(), subgraph, inputs, on_cpu);
    for (size_t o = 0; o < ports.outputs.size(); ++o) {
      const auto got = elements(ports.outputs[o], on_gpu[o]), want = elements(ports.outputs[o], on_cpu[o]);
      for (size_t i = 0; i < got.size(); ++i) {
        // The error of a value near 0 is relative to its terms: about 1 for a mean, 4 for an element with gamma and beta.
        const double size_of_terms = got.size() > 5 ? 4.0 : 1.0;
        ASSERT_LE(std::abs(got[i] - want[i]), 2 * std::max(std::abs(want[i]), size_of_terms) * 0x1p-23)
            << "output " << o << " element " << i << " of " << size;
      }
    }
  }
}

TEST(GpuWindows, PoolsAndTheirGradients) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const OpKind kind : {OpKind::MaxPool, OpKind::AvgPool, OpKind::MaxPoolBackward, OpKind::AvgPoolBackward})
    for (const char* const format : {"NXC", "NCX"})
      for (const bool is_long : {false, true}) {
        SCOPED_TRACE(join(name_of(kind), " ", format, is_long ? " long" : ""));
        const Dims windows = is_long ? Dims{7, 6} : Dims{3, 2};
        const GpuResult result = expect_gpu_is_right(*gpu, pool_graph(kind, is_long ? f32 : bf16, format, windows), 2);
        ASSERT_EQ(result.partitions.size(), 1U);
        EXPECT_EQ(result.partitions[0].kernels.size(), kind == OpKind::MaxPoolBackward ? 2U : 1U);
      }
}

// Of a pixel that is the maximum of many windows.
TEST(GpuWindows, SumManyGradientsAccurately) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const Dims& windows : {Dims{5, 6}, Dims{12, 12}}) {
    SCOPED_TRACE(describe(windows));
    expect_gpu_is_right(*gpu, pool_graph(OpKind::MaxPoolBackward, f32, "NXC", windows, {30, 40}, 1), 2);
  }
}

TEST(GpuWindows, InterpolateAndItsGradient) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const char* const mode : {"nearest", "linear"})
    for (const char* const format : {"NXC", "NCX"})
      for (const OpKind kind : {OpKind::Interpolate, OpKind::InterpolateBackward}) {
        SCOPED_TRACE(join(name_of(kind), " ", mode, " ", format));
        expect_one_kernel(expect_gpu_is_right(*gpu, interpolate_graph(kind, mode, format), 2));
      }
}

// Sums are in the order of the indices, as on the CPU, so they have its bits.
TEST(GpuScatterAdd, HasTheBitsOfTheCpu) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : {f32, DataType::bf16, DataType::f64}) {
    for (const int64_t axis : {0, 1}) {
      GraphBuilder g;
      const auto src = g.input(dtype, axis == 0 ? Dims{300, 24} : Dims{24, 300}), indices = g.input(DataType::s64, {300});
      g.op(OpKind::ScatterAdd, {src, indices}, {{"axis", axis}, {"extent", int64_t{40}}});
      const Buffer data = indices_of(g.tensor(indices), some_indices(300, 40));
      expect_one_kernel(expect_gpu_is_right(*gpu, g.finish(), 4, 1, {{indices, data}}));
    }
  }
}

TEST(GpuGather, AnIndexOutsideRaisesAnErrorBeforeTheKernelRuns) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const auto src = g.input(f32, {4, 3}), indices = g.input(DataType::s32, {2});
  g.op(OpKind::Gather, {src, indices});
  const Graph graph = with_strides(g.finish());
  const Subgraph subgraph{graph, graph.inputs(), graph.outputs()};
  const Buffer table = buffer_for(g.tensor(src)), data = indices_of(g.tensor(indices), {3, 4});
  std::vector<Buffer> outputs{buffer_for(graph.tensor(graph.outputs()[0]))};
  const std::vector<LogicalTensor> ins{g.tensor(src), g.tensor(indices)};
  EXPECT_EQ(index_error_of([&] { run_on_gpu(*gpu, subgraph, ins, {&table, &data}, outputs); }),
            "Gather \"op0\": input indices holds 4 at position [1], allowed is -4..3");
}

}  // namespace
}  // namespace lamina::testing
