// ScatterAdd: kernels that sum entries in the order of sorted indices, alone and fused with what reads their result. The tests
// run on the CPU and in the interpreter of the kernel IR; the GPU tests run them too.
#include <gmock/gmock.h>

#include "backends/cpu/library/library_check.h"
#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/index_buffers.h"
#include "interface/type_rules.h"
#include "support/graph_builder.h"
#include "support/index_error.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64;

struct Case {
  DataType dtype = f32, type = s64;
  Dims table{50, 24}, indices{3, 7};
  int64_t axis = 0;
  Dims strides = {};  // of the data that is read
};

class ScatterGraph : public GraphBuilder {
 public:
  uint64_t scatter(const Case& c) {
    Dims shape = c.table;
    shape.erase(shape.begin() + c.axis);
    shape.insert(shape.begin() + c.axis, c.indices.begin(), c.indices.end());
    const int64_t extent = c.table[static_cast<size_t>(c.axis)];
    const auto src = input(c.dtype, shape, c.strides), indices = input(c.type, c.indices);
    given.emplace(indices, indices_of(tensor(indices), some_indices(number_of(c.indices), extent)));
    return op(OpKind::ScatterAdd, {src, indices}, {{"axis", c.axis}, {"extent", extent}, {"ignore_index", int64_t{0}}});
  }
  std::map<uint64_t, Buffer> given;
};

void expect_one_right_kernel(ScatterGraph& g, double factor = 4) {
  const auto given = g.given;
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), factor, 1, given));
}

void expect_scattered(const Case& c) {
  ScatterGraph g;
  g.scatter(c);
  expect_one_right_kernel(g);
}

TEST(ScatterAdd, AddsInTheOrderOfTheIndices) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64})
    for (const int64_t axis : {0, 1}) expect_scattered({.dtype = dtype, .axis = axis});
}

TEST(ScatterAdd, AlongAnyAxis) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_scattered({.table = {5, 6, 7}, .indices = {9}, .axis = axis});
    expect_scattered({.type = s32, .table = {5, 6, 7}, .indices = {2, 1, 3}, .axis = axis});
    expect_scattered({.table = {5, 6, 70}, .indices = {}, .axis = axis});
  }
}

TEST(ScatterAdd, ManyRowsAndLongOnes) {
  expect_scattered({.table = {13, 700}, .indices = {3000}});
  expect_scattered({.type = s32, .table = {5000, 1}, .indices = {40, 10}});
  expect_scattered({.table = {1, 40}, .indices = {300}});
  expect_scattered({.table = {3, 9000}, .indices = {40}});
}

TEST(ScatterAdd, OfStridedRows) {
  expect_scattered({.table = {6, 5}, .indices = {4}, .strides = {1, 9}});
  expect_scattered({.table = {6, 20}, .indices = {2, 3}, .strides = {200, 40, 1}});
}

TEST(ScatterAdd, OfNothingIsZero) {
  expect_scattered({.table = {5, 4}, .indices = {0}});
  expect_scattered({.table = {5, 0}, .indices = {3}});
}

// The bits of one thread, for tables whose rows or whose columns threads share.
TEST(ScatterAdd, BitsDoNotDependOnThreads) {
  for (const Dims& table : {Dims{900, 77}, Dims{2, 9000}, Dims{40000, 1}}) {
    ScatterGraph g;
    g.scatter({.table = table, .indices = {3000}});
    const auto given = g.given;
    expect_library_matches_reference(g.finish(), 1e-6, given);
  }
}

//   scatter ───> multiply ───> subtract: a step of gradient descent
TEST(FusedScatterAdd, AnUpdateOfWeightsIsOneKernel) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f64}) {
    ScatterGraph g;
    const auto gradient = g.scatter({.dtype = dtype, .table = {60, 100}, .indices = {90}});
    const auto step = g.op(OpKind::Multiply, {gradient, g.input(dtype, {1})});
    g.op(OpKind::Subtract, {g.input(dtype, {60, 100}), step});
    expect_one_right_kernel(g);
  }
}

TEST(FusedScatterAdd, ANormReadsTheSums) {
  for (const DataType dtype : {f32, DataType::f16}) {
    for (const int64_t row : {3, 16, 100, 5000}) {
      SCOPED_TRACE(row);
      ScatterGraph g;
      const auto sums = g.scatter({.dtype = dtype, .table = {12, row}, .indices = {50}});
      g.multi(OpKind::LayerNorm, {sums, g.input(f32, {row}), g.input(f32, {row})}, {{"keep_stats", false}}, {dtype});
      expect_one_right_kernel(g, 16);
    }
  }
}

// The sums vary along the rows of the reduction, or there is one per row.
TEST(FusedScatterAdd, ASoftmaxReadsSumsAlongTheirAxis) {
  ScatterGraph g;
  g.op(OpKind::SoftMax, {g.scatter({.table = {9, 77}, .indices = {40}, .axis = 1})}, {{"axis", int64_t{1}}});
  expect_one_right_kernel(g, 16);
}

TEST(FusedScatterAdd, ASumPerRowScalesTheRow) {
  ScatterGraph g;
  const auto scale = g.scatter({.table = {64, 1}, .indices = {300}});
  const auto scaled = g.op(OpKind::Multiply, {g.input(f32, {64, 33}), scale});
  g.multi(OpKind::LayerNorm, {scaled, g.input(f32, {33}), g.input(f32, {33})}, {{"keep_stats", false}}, {f32});
  expect_one_right_kernel(g, 16);
}

TEST(ScatterAdd, AnIndexOutsideIsNamedByBothEngines) {
  for (const Backend* backend : {&cpu_backend(), &reference_backend()}) {
    GraphBuilder g;
    const auto src = g.input(f32, {3, 2}), indices = g.input(s64, {3});
    g.named("grad").op(OpKind::ScatterAdd, {src, indices}, {{"extent", int64_t{4}}, {"ignore_index", int64_t{-100}}});
    const Graph graph = with_strides(g.finish());
    const Subgraph subgraph{graph, graph.inputs(), graph.outputs()};
    const Buffer rows = buffer_for(g.tensor(src)), data = indices_of(g.tensor(indices), {-100, -4, 4});
    Buffer dst = buffer_for(graph.tensor(graph.outputs()[0]));
    const auto executable = compiler::compile_subgraph(subgraph, *backend);
    const std::vector<const void*> in{rows.data(), data.data()};
    const std::vector<void*> out{dst.data()};
    EXPECT_EQ(index_error_of([&] { executable->execute({}, in, out); }),
              "ScatterAdd \"grad\": input indices holds 4 at position [2], allowed is -4..3");
  }
}

}  // namespace
}  // namespace lamina::testing
