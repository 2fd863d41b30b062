// CumSum, CumProd, linear recurrences and TopK by generated programs, on the available OpenCL device (PoCL suffices): the bits
// of the CPU.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <random>

#include "backends/cpu/support/along_axis_values.h"
#include "backends/gpu/gpu_check.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s64 = DataType::s64;

// `data`: of the only input.
ExecutableInfo expect_bits_of_the_cpu(const Backend& gpu, const Graph& graph, const Buffer& data) {
  const Subgraph subgraph{with_strides(graph), graph.inputs(), graph.outputs()};
  std::vector<Buffer> actual;
  for (const ValueIndex v : subgraph.outputs) actual.push_back(buffer_for(subgraph.graph.tensor(v)));
  std::vector<Buffer> expected = actual;
  PortData inputs;
  inputs.buffers = {&data};
  inputs.pointers = {data.data()};
  const ExecutableInfo info =
      run_on_gpu(gpu, subgraph, {subgraph.graph.tensor(subgraph.inputs.front())}, inputs.buffers, actual);
  run_on_host(cpu_backend(), subgraph, inputs, expected);
  for (size_t o = 0; o < actual.size(); ++o) EXPECT_TRUE(actual[o] == expected[o]) << "output " << o;
  return info;
}

Buffer random_values(const LogicalTensor& tensor) {
  Buffer data = buffer_for(tensor);
  std::mt19937 random(1);
  fill(data, tensor, "src", random);
  return data;
}

struct RunningCase {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1;
  bool exclusive = false, reverse = false;
  Dims strides = {};
  OpKind kind = OpKind::CumSum;
};

ExecutableInfo expect_running(const Backend& gpu, const RunningCase& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis, c.exclusive ? " exclusive" : "",
                    c.reverse ? " reverse" : ""));
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.shape, c.strides);
  g.op(c.kind, {src}, {{"axis", c.axis}, {"exclusive", c.exclusive}, {"reverse", c.reverse}}, c.dtype);
  const Buffer data = random_values(g.tensor(src));
  return expect_bits_of_the_cpu(gpu, g.finish(), data);
}

TEST(GpuCumSum, AddsEveryType) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool exclusive : {true, false})
      for (const bool reverse : {true, false})
        expect_running(*gpu, {.dtype = dtype, .exclusive = exclusive, .reverse = reverse});
}

TEST(GpuBitCast, CopiesBits) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const auto& [from, to] :
       {std::pair{f32, DataType::s32}, {DataType::f64, DataType::u64}, {DataType::f16, DataType::s16}}) {
    GraphBuilder g;
    const uint64_t src = g.input(from, {5, 40}, {1, 7});
    g.op(OpKind::BitCast, {g.op(OpKind::Abs, {src})}, {}, to);
    const Buffer data = random_values(g.tensor(src));
    expect_bits_of_the_cpu(*gpu, g.finish(), data);
  }
}

TEST(GpuCumProd, MultipliesEveryType) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool exclusive : {true, false})
      expect_running(*gpu, {.dtype = dtype, .exclusive = exclusive, .reverse = !exclusive, .kind = OpKind::CumProd});
}

TEST(GpuCumSum, AddsAlongAnyAxisOfAnyLayout) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t axis : {0, 1, 2}) {
    expect_running(*gpu, {.shape = {6, 9, 5}, .axis = axis});
    expect_running(*gpu, {.shape = {6, 9, 5}, .axis = axis, .reverse = true, .strides = {1, 40, 7}});
  }
  expect_running(*gpu, {.shape = {700, 3}});
  expect_running(*gpu, {.shape = {0, 3}});
  expect_running(*gpu, {.shape = {3, 0}});
  expect_running(*gpu, {.shape = {9}});
}

TEST(GpuCumSum, IsOneProgramForAllSizes) {
  LAMINA_GPU_OR_SKIP(gpu);
  const ExecutableInfo first = expect_running(*gpu, {.shape = {4, 6}});
  EXPECT_THAT(first.kernels, ::testing::ElementsAre("lamina_cum_sum_f32"));
  EXPECT_THAT(first.schedules, ::testing::ElementsAre("a thread per row"));
  EXPECT_TRUE(expect_running(*gpu, {.shape = {8, 2}}).from_cache);
}

// Its step reads and writes what kernels of the same partition write and read.
TEST(GpuCumSum, IsAPartOfAPartition) {
  LAMINA_GPU_OR_SKIP(gpu);
  GraphBuilder g;
  const uint64_t src = g.input(f32, {5, 40});
  const uint64_t sums = g.op(OpKind::CumSum, {g.op(OpKind::Abs, {src})}, {{"axis", int64_t{1}}}, f32);
  g.op(OpKind::Sqrt, {sums});
  const Buffer data = random_values(g.tensor(src));
  const Graph graph = g.finish();
  EXPECT_EQ(partition_graph(graph, PartitionPolicy::fusion, *gpu).size(), 1U);
  expect_bits_of_the_cpu(*gpu, graph, data);
}

struct RecurrenceCase {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1;
  bool reverse = false;
};

void expect_recurrence(const Backend& gpu, const RecurrenceCase& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis, c.reverse ? " reverse" : ""));
  const Attributes attributes{{"axis", c.axis}, {"reverse", c.reverse}};
  GraphBuilder forward;
  const uint64_t src = forward.input(c.dtype, c.shape);
  const uint64_t factors = forward.op(OpKind::Tanh, {src}, {}, c.dtype);
  forward.op(OpKind::LinearRecurrence, {factors, src}, attributes, c.dtype);
  const Buffer data = random_values(forward.tensor(src));
  expect_bits_of_the_cpu(gpu, forward.finish(), data);
  GraphBuilder backward;
  const uint64_t states = backward.input(c.dtype, c.shape);
  backward.multi(OpKind::LinearRecurrenceBackward,
                 {backward.op(OpKind::Abs, {states}, {}, c.dtype), backward.op(OpKind::Tanh, {states}, {}, c.dtype), states},
                 attributes, {c.dtype, c.dtype});
  expect_bits_of_the_cpu(gpu, backward.finish(), data);
}

TEST(GpuLinearRecurrence, HasTheBitsOfTheCpu) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64})
    for (const bool reverse : {true, false}) expect_recurrence(*gpu, {.dtype = dtype, .reverse = reverse});
  for (const int64_t axis : {0, 1, 2}) expect_recurrence(*gpu, {.shape = {6, 9, 37}, .axis = axis});
  expect_recurrence(*gpu, {.shape = {0, 3}});
  expect_recurrence(*gpu, {.shape = {3, 0}});
}

struct Case {
  DataType dtype = f32;
  Dims shape{5, 40};
  int64_t axis = -1, k = 7;
  bool largest = true;
  Dims strides = {};
  std::vector<DataType> outputs = {};
};

void expect_in_order(const Backend& gpu, const Case& c) {
  SCOPED_TRACE(join(name_of(c.dtype), describe(c.shape), " axis ", c.axis, " k ", c.k));
  GraphBuilder g;
  const uint64_t src = g.input(c.dtype, c.shape, c.strides);
  const Buffer data = repeated_values(g.tensor(src));
  const auto outputs = c.outputs.empty() ? std::vector<DataType>{c.dtype, s64} : c.outputs;
  g.multi(OpKind::TopK, {src}, {{"axis", c.axis}, {"k", c.k}, {"largest", c.largest}}, outputs);
  expect_bits_of_the_cpu(gpu, g.finish(), data);
}

TEST(GpuTopK, OrdersEveryType) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const DataType dtype : kTypesAlongAnAxis)
    for (const bool largest : {true, false})
      for (const int64_t k : {1, 7, 40}) expect_in_order(*gpu, {.dtype = dtype, .k = k, .largest = largest});
}

TEST(GpuTopK, OrdersAlongAnyAxisOfAnyLayout) {
  LAMINA_GPU_OR_SKIP(gpu);
  for (const int64_t axis : {0, 1, 2}) {
    expect_in_order(*gpu, {.shape = {6, 9, 5}, .axis = axis, .k = 4});
    expect_in_order(*gpu, {.shape = {6, 9, 5}, .axis = axis, .k = 5, .strides = {1, 40, 7}});
  }
  expect_in_order(*gpu, {.shape = {300, 8}, .k = 2});
  expect_in_order(*gpu, {.shape = {900}, .k = 900});
  expect_in_order(*gpu, {.shape = {5, 8}, .k = 0});
}

TEST(GpuTopK, LeavesOutWhatNobodyReads) {
  LAMINA_GPU_OR_SKIP(gpu);
  expect_in_order(*gpu, {.outputs = {f32, DataType::undef}});
  expect_in_order(*gpu, {.outputs = {DataType::undef, s64}});
}

}  // namespace
}  // namespace lamina::testing
