// Gather: kernels that read a table by index, alone and fused with what reads their result. The tests run on the CPU and in the
// interpreter of the kernel IR; the GPU tests run them too. An index that is out of range raises an error that names it, and
// reads no memory.
#include <gmock/gmock.h>

#include "backends/cpu/support/cpu_check.h"
#include "backends/cpu/support/index_buffers.h"
#include "interface/type_rules.h"
#include "support/graph_builder.h"
#include "support/index_error.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32, s32 = DataType::s32, s64 = DataType::s64;

// A graph whose inputs include indices.
class GatherGraph : public GraphBuilder {
 public:
  uint64_t gather(uint64_t table, const Dims& shape, int64_t axis = 0, DataType type = s64) {
    const auto indices = input(type, shape);
    const int64_t extent = (*tensor(table).shape)[static_cast<size_t>(axis)];
    given.emplace(indices, indices_of(tensor(indices), some_indices(number_of(shape), extent)));
    return op(OpKind::Gather, {table, indices}, {{"axis", axis}});
  }
  std::map<uint64_t, Buffer> given;
};

void expect_one_right_kernel(GatherGraph& g, double factor = 4) {
  const auto given = g.given;
  expect_one_kernel(expect_cpu_matches_reference(g.finish(), factor, 1, given));
}

struct Case {
  DataType dtype = f32, type = s64;
  Dims table{50, 24}, indices{3, 7};
  int64_t axis = 0;
  Dims strides = {};  // of the table
};

void expect_gathered(const Case& c) {
  GatherGraph g;
  g.gather(g.input(c.dtype, c.table, c.strides), c.indices, c.axis, c.type);
  expect_one_right_kernel(g);
}

TEST(Gather, OfAnyTypeOfWholeBytes) {
  for (const DataType dtype : all_types())
    if (bits_of(dtype) >= 8 && dtype != s64) expect_gathered({.dtype = dtype});
}

TEST(Gather, AlongAnyAxis) {
  for (const int64_t axis : {0, 1, 2}) {
    expect_gathered({.table = {5, 6, 7}, .indices = {9}, .axis = axis});
    expect_gathered({.table = {5, 6, 7}, .indices = {}, .axis = axis, .strides = {1, 40, 5}});
    expect_gathered({.type = s32, .table = {5, 6, 7}, .indices = {2, 1, 3}, .axis = axis, .strides = {100, 8, 1}});
  }
}

TEST(Gather, ManyRowsAndLongOnes) {
  expect_gathered({.table = {1000, 3}, .indices = {20000}});
  expect_gathered({.table = {4, 40000}, .indices = {9}});
}

TEST(Gather, OfNothing) {
  expect_gathered({.table = {5, 0}, .indices = {3}});
  expect_gathered({.table = {5, 4}, .indices = {0}});
}

//   words ───> gather ─┐
//   places ──> gather ─┴> add ──> norm
TEST(FusedGather, AnEmbeddingIsOneKernelWithItsNorm) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16}) {
    for (const int64_t row : {3, 16, 100, 768, 5000}) {
      SCOPED_TRACE(row);
      GatherGraph g;
      const auto words = g.gather(g.input(dtype, {100, row}), {2, 5});
      const auto places = g.gather(g.input(dtype, {12, row}), {5}, 0, s32);
      const auto sum = g.op(OpKind::Add, {words, places});
      g.multi(OpKind::LayerNorm, {sum, g.input(f32, {row}), g.input(f32, {row})}, {{"keep_stats", false}}, {dtype});
      expect_one_right_kernel(g);
    }
  }
}

// The indices vary along the rows: each lane reads another entry.
TEST(FusedGather, ASoftmaxReadsAlongTheLastAxis) {
  GatherGraph g;
  g.op(OpKind::SoftMax, {g.gather(g.input(f32, {9, 40}), {77}, 1)}, {{"axis", int64_t{1}}});
  expect_one_right_kernel(g);
}

// A value per row is read by index.
TEST(FusedGather, AScalePerRowIsReadByIndex) {
  GatherGraph g;
  const auto scale = g.gather(g.input(f32, {11, 1}), {64});
  const auto scaled = g.op(OpKind::Multiply, {g.input(f32, {64, 33}), scale});
  g.multi(OpKind::LayerNorm, {scaled, g.input(f32, {33}), g.input(f32, {33})}, {{"keep_stats", false}}, {f32});
  expect_one_right_kernel(g);
}

// The sum over rows reads the gathered rows, too.
TEST(FusedGather, GradientsOfANormReadItsData) {
  GatherGraph g;
  const auto x = g.gather(g.input(f32, {30, 48}), {70});
  const auto dy = g.input(f32, {70, 48}), mean = g.input(f32, {70}), variance = g.input(f32, {70}), gamma = g.input(f32, {48});
  g.multi(OpKind::LayerNormBackward, {x, dy, mean, variance, gamma}, {}, {f32, f32, f32});
  expect_one_right_kernel(g, 16);
}

// The test includes a table without entries.
TEST(IndexOutside, IsNamedByBothEngines) {
  for (const Backend* backend : {&cpu_backend(), &reference_backend()})
    for (const int64_t extent : {4, 0}) {
      GraphBuilder g;
      const auto src = g.input(f32, {extent, 3}), indices = g.input(s64, {2, 2});
      g.named("embed").op(OpKind::Gather, {src, indices});
      const Graph graph = with_strides(g.finish());
      const Subgraph subgraph{graph, graph.inputs(), graph.outputs()};
      const Buffer table = buffer_for(g.tensor(src)), data = indices_of(g.tensor(indices), {0, 3, -5, 0});
      Buffer dst = buffer_for(graph.tensor(graph.outputs()[0]));
      const auto executable = compiler::compile_subgraph(subgraph, *backend);
      const std::vector<const void*> in{table.data(), data.data()};
      const std::vector<void*> out{dst.data()};
      EXPECT_EQ(index_error_of([&] { executable->execute({}, in, out); }),
                extent == 0
                    ? "Gather \"embed\": input indices holds 0 at position [0, 0], allowed is none, the axis has no entries"
                    : "Gather \"embed\": input indices holds -5 at position [1, 0], allowed is -4..3");
    }
}

}  // namespace
}  // namespace lamina::testing
