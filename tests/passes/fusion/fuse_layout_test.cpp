// Which layout ops join the loop nest of their neighbours: transposes, reshapes, slices, gathers, broadcasts (fuse_test.cpp
// describes the pictures).
#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;

TEST(FuseLayout, ElementwiseOpsTakeATranspose) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input(f32, {4, 8})});
  const auto turned = g.named("turn").op(OpKind::StaticTranspose, {exp}, {{"order", std::vector<int64_t>{1, 0}}});
  g.named("abs").op(OpKind::Abs, {turned});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "exp turn abs");
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.input_maps.at({2, 0}), (DimMap{{1, 1}, {0, 1}}));
}
Graph norm_then_transpose(std::vector<int64_t> order) {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 6, 8}), 8));
  g.named("turn").op(OpKind::StaticTranspose, {norm}, {{"order", std::move(order)}});
  return g.finish();
}
TEST(FuseLayout, ANormTakesATransposeOfItsOuterDims) { EXPECT_EQ(fused(norm_then_transpose({1, 0, 2})), "norm turn"); }
TEST(FuseLayout, ANormLeavesATransposeOfItsRowsAlone) {
  const Graph graph = norm_then_transpose({0, 2, 1});
  EXPECT_EQ(fused(graph), "norm | turn");
  EXPECT_THAT(codes_of(graph, "turn"), Contains("alone.layout"));
}

Graph norm_then_reshape(std::vector<int64_t> shape) {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 6, 8}), 8));
  const auto shaped =
      g.named("shape").op(OpKind::StaticReshape, {norm}, {{"shape", std::move(shape)}, {"special_zero", false}});
  g.named("abs").op(OpKind::Abs, {shaped});
  return g.finish();
}
TEST(FuseLayout, ReshapesThatMergeOrSplitDimsJoin) {
  EXPECT_EQ(fused(norm_then_reshape({24, 8})), "norm shape abs");
  EXPECT_EQ(fused(norm_then_reshape({4, 6, 2, 4})), "norm shape abs");
  EXPECT_EQ(fused(norm_then_reshape({1, 4, 6, 8, 1})), "norm shape abs");
}
TEST(FuseLayout, ReshapesWithoutCommonDimsAreCopies) {
  const Graph graph = norm_then_reshape({3, 64});
  EXPECT_EQ(fused(graph), "norm | shape | abs");
  EXPECT_TRUE(groups_of(graph).at(1).opaque_copy);
}

Attributes slice_of(int64_t axis, int64_t start, int64_t end) {
  return {{"starts", std::vector<int64_t>{start}}, {"ends", std::vector<int64_t>{end}}, {"axes", std::vector<int64_t>{axis}}};
}

//       ┌─> left ──> gelu ─┐
//   x ──┤                  mul
//       └─> right ─────────┘
TEST(FuseLayout, ReadersOfSlicesTakeThemWhereTheyLie) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 16});
  const auto left = g.named("left").op(OpKind::Slice, {x}, slice_of(1, 0, 8));
  const auto right = g.named("right").op(OpKind::Slice, {x}, slice_of(1, 8, 16));
  const auto gelu = g.named("gelu").op(OpKind::GELU, {left});
  g.named("mul").op(OpKind::Multiply, {gelu, right});
  EXPECT_EQ(fused(g.finish()), "left right gelu mul");
}
TEST(FuseLayout, ASliceLeavesWhatItTakesAPartOfOutside) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input(f32, {4, 16})});
  const auto part = g.named("part").op(OpKind::Slice, {exp}, slice_of(1, 0, 8));
  g.named("abs").op(OpKind::Abs, {part});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "exp | part abs");
  EXPECT_THAT(codes_of(graph, "part"), Contains("alone.part"));
}
// The test includes an axis where every second element has a neighbour of the same extent.
TEST(FuseLayout, ASliceOfWhatTheGroupMakesIsNotTakenForIt) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input(f32, {8})});
  const auto part = g.named("part").op(OpKind::Slice, {exp}, slice_of(0, 4, 8));
  const auto first = g.named("first").op(OpKind::Slice, {g.input(f32, {8})}, slice_of(0, 0, 4));
  g.named("add").op(OpKind::Add, {first, part});
  EXPECT_EQ(fused(g.finish()), "exp | part first add");
}
TEST(FuseLayout, ANormTakesASliceInFront) {
  GraphBuilder g;
  const auto part = g.named("part").op(OpKind::Slice, {g.input(f32, {4, 24})}, slice_of(1, 8, 16));
  g.named("norm");
  layer_norm(g, part, 8);
  EXPECT_EQ(fused(g.finish()), "part norm");
}
TEST(FuseLayout, AnEmbeddingIsReadByItsSumAndNorm) {
  GraphBuilder g;
  const auto words = g.named("words").op(OpKind::Gather, {g.input(f32, {100, 8}), g.input(DataType::s64, {2, 3})});
  const auto places = g.named("places").op(OpKind::Gather, {g.input(f32, {50, 8}), g.input(DataType::s32, {3})});
  const auto add = g.named("add").op(OpKind::Add, {words, places});
  g.named("norm");
  layer_norm(g, add, 8);
  EXPECT_EQ(fused(g.finish()), "words places add norm");
}
TEST(FuseLayout, ACastJoinsTheGatherThatItReadsOrThatReadsBesideIt) {
  GraphBuilder g;
  const auto words = g.named("words").op(OpKind::Gather, {g.input(DataType::f16, {100, 8}), g.input(DataType::s64, {3})});
  const auto wide = g.named("wide").op(OpKind::TypeCast, {words}, {}, f32);
  const auto cast = g.named("cast").op(OpKind::TypeCast, {g.input(DataType::bf16, {3, 8})}, {}, f32);
  g.named("add").op(OpKind::Add, {wide, cast});
  EXPECT_EQ(fused(g.finish()), "words wide cast add");
}
// All of the table and of the indices must be in memory before.
TEST(FuseLayout, AGatherLeavesItsTableAndIndicesOutside) {
  GraphBuilder g;
  const auto table = g.named("table").op(OpKind::Exp, {g.input(f32, {3, 8})});
  const auto indices = g.named("indices").op(OpKind::Add, {g.input(DataType::s32, {3}), g.input(DataType::s32, {3})});
  g.named("gather").op(OpKind::Gather, {table, indices});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "table | indices | gather");
  EXPECT_THAT(codes_of(graph, "gather"), Contains("alone.part"));
}
// The same holds for what is summed by index. What reads the sums joins them.
TEST(FuseLayout, AScatterAddIsFusedWithItsReaders) {
  GraphBuilder g;
  const auto rows = g.named("rows").op(OpKind::Exp, {g.input(f32, {3, 8})});
  const auto sums = g.named("scatter").op(OpKind::ScatterAdd, {rows, g.input(DataType::s32, {3})}, {{"extent", int64_t{20}}});
  g.named("add").op(OpKind::Add, {g.input(f32, {20, 8}), sums});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "rows | scatter add");
  EXPECT_THAT(codes_of(graph, "scatter"), Contains("alone.part"));
}
TEST(FuseLayout, AnExpandIsReadWithoutAStep) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input(f32, {4, 1, 8})});
  const auto wide = g.named("wide").op(OpKind::Expand, {exp}, {{"shape", std::vector<int64_t>{4, 6, 8}}});
  g.named("abs").op(OpKind::Abs, {wide});
  EXPECT_EQ(fused(g.finish()), "exp wide abs");
}

}  // namespace
}  // namespace lamina::testing
