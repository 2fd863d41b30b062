// Slice and Expand: consumers read the selected elements directly from the source; a view that is a graph output is copied.
// They run on the CPU and in the interpreter of the kernel IR; the GPU tests run them too.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backends/cpu/support/cpu_check.h"
#include "interface/type_rules.h"
#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

constexpr DataType f32 = DataType::f32;

Attributes slice_of(std::vector<int64_t> axes, std::vector<int64_t> starts, std::vector<int64_t> ends,
                    std::vector<int64_t> steps = {}) {
  return {{"axes", std::move(axes)}, {"starts", std::move(starts)}, {"ends", std::move(ends)}, {"steps", std::move(steps)}};
}

Attributes shape_of(std::vector<int64_t> shape) { return {{"shape", std::move(shape)}}; }
Attributes reshape_to(std::vector<int64_t> shape) { return {{"shape", std::move(shape)}, {"special_zero", false}}; }

class PartKernels : public ::testing::TestWithParam<DataType> {};

TEST_P(PartKernels, ASliceThatLeavesIsACopy) {
  GraphBuilder g;
  g.op(OpKind::Slice, {g.input(GetParam(), {5, 7, 33})}, slice_of({0, 1, 2}, {1, 0, 3}, {5, 7, 30}, {3, 2, 1}));
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST_P(PartKernels, ASliceWithStepsAlongTheLastAxis) {
  GraphBuilder g;
  g.op(OpKind::Slice, {g.input(GetParam(), {9, 70})}, slice_of({-1}, {1}, {INT64_MAX}, {3}));
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST_P(PartKernels, AnExpandThatLeavesIsACopy) {
  GraphBuilder g;
  g.op(OpKind::Expand, {g.input(GetParam(), {5, 1, 19})}, shape_of({2, 5, 3, -1}));
  g.op(OpKind::Expand, {g.input(GetParam(), {6, 1})}, shape_of({6, 40}));
  expect_cpu_matches_reference(g.finish());
}

std::vector<DataType> types_of_whole_bytes() {
  std::vector<DataType> types = all_types();
  std::erase_if(types, [](DataType type) { return bits_of(type) < 8; });
  return types;
}

INSTANTIATE_TEST_SUITE_P(Types, PartKernels, ::testing::ValuesIn(types_of_whole_bytes()),
                         [](const auto& instance) { return std::string(name_of(instance.param)); });

//   x ──> halves ──> gelu(left) * right
TEST(FusedParts, GatedHalvesAreOneKernel) {
  for (const DataType dtype : {f32, DataType::bf16, DataType::f16, DataType::f64}) {
    GraphBuilder g;
    const auto x = g.input(dtype, {37, 90});
    const auto left = g.op(OpKind::Slice, {x}, slice_of({1}, {0}, {45}));
    const auto right = g.op(OpKind::Slice, {x}, slice_of({1}, {45}, {90}));
    g.op(OpKind::Multiply, {g.op(OpKind::GELU, {left}), right});
    expect_one_kernel(expect_cpu_matches_reference(g.finish(), 8));
  }
}

// x * cos + rotate_half(x) * sin, for one half: reads both halves of x, of cos and of sin.
TEST(FusedParts, RotaryHalvesAreOneKernel) {
  GraphBuilder g;
  const auto x = g.input(f32, {2, 3, 20, 32}), cos = g.input(f32, {20, 32}), sin = g.input(f32, {20, 32});
  const auto half = [&](uint64_t whole, int64_t axis, bool second) {
    return g.op(OpKind::Slice, {whole}, slice_of({axis}, {second ? 16 : 0}, {second ? 32 : 16}));
  };
  const auto direct = g.op(OpKind::Multiply, {half(x, 3, false), half(cos, 1, false)});
  const auto turned = g.op(OpKind::Multiply, {half(x, 3, true), half(sin, 1, false)});
  g.op(OpKind::Subtract, {direct, turned});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedParts, ANormOfAPartOfEachRow) {
  for (const int64_t width : {16, 200, 3000}) {
    GraphBuilder g;
    const auto part = g.op(OpKind::Slice, {g.input(f32, {11, 3 * width})}, slice_of({1}, {width}, {2 * width}));
    const auto shift = g.op(OpKind::Slice, {g.input(f32, {11, 3 * width})}, slice_of({1}, {2 * width}, {3 * width}));
    const auto norm = g.op(OpKind::LayerNorm, {part}, {{"use_affine", false}, {"keep_stats", false}});
    g.op(OpKind::Add, {norm, shift});
    expect_one_kernel(expect_cpu_matches_reference(g.finish()));
  }
}

TEST(FusedParts, OneRowOfManyForAll) {
  GraphBuilder g;
  const auto row = g.op(OpKind::Slice, {g.input(f32, {6, 40})}, slice_of({0}, {-2}, {-1}));
  g.op(OpKind::Add, {row, g.input(f32, {9, 40})});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedParts, AreReshapedAndTransposed) {
  GraphBuilder g;
  const auto part = g.op(OpKind::Slice, {g.input(f32, {2, 10, 72})}, slice_of({1, 2}, {1, 24}, {9, 48}, {2, 1}));
  const auto heads = g.op(OpKind::StaticReshape, {part}, reshape_to({2, 4, 3, 8}));
  g.op(OpKind::StaticTranspose, {heads}, {{"order", std::vector<int64_t>{0, 2, 1, 3}}});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedParts, OfStridedTensors) {
  GraphBuilder g;
  const auto x = g.input(f32, {6, 9, 10}, {200, 1, 13});
  g.op(OpKind::Exp, {g.op(OpKind::Slice, {x}, slice_of({0, 1, 2}, {1, 2, 3}, {6, 9, 9}, {2, 3, 1}))});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

TEST(FusedParts, OfWhatAnotherKernelMakes) {
  GraphBuilder g;
  const auto norm = g.op(OpKind::LayerNorm, {g.input(f32, {8, 24})}, {{"use_affine", false}, {"keep_stats", false}});
  const auto part = g.op(OpKind::Slice, {norm}, slice_of({1}, {8}, {16}));
  g.op(OpKind::Exp, {part});
  g.output(norm);
  expect_cpu_matches_reference(g.finish());
}

TEST(FusedParts, OfNothing) {
  GraphBuilder g;
  g.op(OpKind::Exp, {g.op(OpKind::Slice, {g.input(f32, {8, 24})}, slice_of({1}, {30}, {40}))});
  g.op(OpKind::Exp, {g.op(OpKind::Expand, {g.input(f32, {1, 24})}, shape_of({0, 24}))});
  expect_cpu_matches_reference(g.finish());
}

// Grouped-query attention: each head of keys serves several heads of queries.
TEST(FusedParts, HeadsAreRepeated) {
  GraphBuilder g;
  const auto keys = g.op(OpKind::Expand, {g.input(f32, {2, 2, 1, 5, 8})}, shape_of({2, 2, 3, 5, 8}));
  g.op(OpKind::Abs, {g.op(OpKind::StaticReshape, {keys}, reshape_to({2, 6, 5, 8}))});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// The backward of a mean: one number per row for all elements of the row.
TEST(FusedParts, AValueOfEachRowForItsElements) {
  GraphBuilder g;
  const auto mean = g.op(OpKind::ReduceMean, {g.input(f32, {9, 33})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  const auto wide = g.op(OpKind::Expand, {mean}, shape_of({9, 33}));
  g.op(OpKind::Abs, {wide});
  expect_one_kernel(expect_cpu_matches_reference(g.finish()));
}

// An input that starts at another offset than the result must not be overwritten while it is read.
TEST(FusedParts, MayShareMemoryOnlyFromTheFirstElementOn) {
  for (const int64_t start : {0, 1}) {
    GraphBuilder g;
    g.op(OpKind::Abs, {g.op(OpKind::Slice, {g.input(f32, {8})}, slice_of({0}, {start}, {start + 4}))});
    const Graph graph = with_strides(g.finish());
    const Subgraph subgraph{graph, graph.inputs(), graph.outputs()};
    EXPECT_EQ(compiler::compile_subgraph(subgraph, cpu_backend())->may_share(0, 0), start == 0) << start;
  }
}

}  // namespace
}  // namespace lamina::testing
