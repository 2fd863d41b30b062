// The loop nests of single ops: extents, inner dims, and the map of each port.
#include "passes/fusion/iteration_view.h"

#include "passes/fusion/common_refinement.h"
#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr AxisRun kNone{0, 0};

IterationView view_of(GraphBuilder& g) {
  const Graph graph = g.finish();
  return iteration_view(graph, graph.ops().back());
}

TEST(CommonRefinement, CutsBothListsIntoTheSamePieces) {
  const auto refined = common_refinement({6, 4}, {2, 12});
  ASSERT_TRUE(refined);
  EXPECT_EQ(refined->pieces, (Dims{2, 3, 4}));
  EXPECT_EQ(refined->a, (std::vector<int>{2, 1}));
  EXPECT_EQ(refined->b, (std::vector<int>{1, 2}));
}
TEST(CommonRefinement, NeedsPiecesThatDivide) {
  EXPECT_FALSE(common_refinement({6, 4}, {4, 6}));
  EXPECT_FALSE(common_refinement({6, 4}, {5, 4}));
  EXPECT_FALSE(common_refinement({0, 4}, {4, 0}));
}
TEST(CommonRefinement, UnknownExtentsMatchDimByDimOnly) {
  EXPECT_TRUE(common_refinement({kUnknownDim, 4}, {kUnknownDim, 4}));
  EXPECT_EQ(common_refinement({kUnknownDim, 4}, {6, 4})->pieces, (Dims{6, 4}));
  EXPECT_FALSE(common_refinement({kUnknownDim, 4}, {kUnknownDim}));
}

TEST(IterationView, BroadcastOperandsDoNotVaryWhereTheirExtentIsOne) {
  GraphBuilder g;
  g.op(OpKind::Add, {g.input(f32, {4, 6, 8}), g.input(f32, {6, 1})});
  const IterationView view = view_of(g);
  EXPECT_EQ(view.extents, (Dims{4, 6, 8}));
  EXPECT_EQ(view.inputs[1], (DimMap{{1, 1}, kNone}));
  EXPECT_FALSE(view.has_inner());
}

TEST(IterationView, ScalarsHaveAnEmptyMap) {
  GraphBuilder g;
  g.op(OpKind::Add, {g.input(f32, {}), g.input(f32, {})});
  const IterationView view = view_of(g);
  EXPECT_THAT(view.extents, IsEmpty());
  EXPECT_THAT(view.inputs[0], IsEmpty());
}

TEST(IterationView, BiasRunsAlongTheChannels) {
  for (const auto& [format, dim] : {std::pair("NXC", 2), std::pair("NCX", 1)}) {
    GraphBuilder g;
    g.op(OpKind::BiasAdd, {g.input(f32, {4, 8, 8}), g.input(f32, {8})}, {{"data_format", std::string(format)}});
    EXPECT_EQ(view_of(g).inputs[1], (DimMap{{dim, 1}})) << format;
  }
}

TEST(IterationView, ReductionsHaveTheirAxesInside) {
  GraphBuilder g;
  g.op(OpKind::ReduceMean, {g.input(f32, {4, 6, 8})}, {{"axes", std::vector<int64_t>{0, -1}}});
  const IterationView view = view_of(g);
  EXPECT_EQ(view.inner, (std::vector<bool>{true, false, true}));
  EXPECT_EQ(view.outputs[0], (DimMap{{1, 1}}));
}
TEST(IterationView, AxesThatAreAnInputHaveNoNest) {
  GraphBuilder g;
  g.op(OpKind::ReduceMean, {g.input(f32, {4, 6}), g.input(s32, {1})});
  EXPECT_EQ(view_of(g).why_not, "its axes are an input");
}

TEST(IterationView, SoftmaxStatisticsDoNotVaryAlongTheAxis) {
  GraphBuilder g;
  g.multi(OpKind::SoftMax, {g.input(f32, {4, 6, 8})}, {{"axis", int64_t{1}}}, {f32, f32});
  const IterationView view = view_of(g);
  EXPECT_EQ(view.inner, (std::vector<bool>{false, true, false}));
  EXPECT_EQ(view.outputs[1], (DimMap{{0, 1}, kNone, {2, 1}}));
}

TEST(IterationView, GradientsOfGammaAreColumns) {
  GraphBuilder g;
  g.multi(OpKind::LayerNormBackward,
          {g.input(f32, {4, 8}), g.input(f32, {4, 8}), g.input(f32, {4}), g.input(f32, {4}), g.input(f32, {8})}, {},
          {f32, f32, f32});
  EXPECT_EQ(view_of(g).column_outputs, (std::vector<bool>{false, true, true}));
}

TEST(IterationView, TheGradientOfASlopePerChannelIsAColumn) {
  GraphBuilder g;
  g.multi(OpKind::PReLUBackward, {g.input(f32, {4, 8}), g.input(f32, {8}), g.input(f32, {4, 8})}, {}, {f32, f32});
  const IterationView view = view_of(g);
  EXPECT_EQ(view.column_outputs, (std::vector<bool>{false, true}));
  EXPECT_EQ(view.inner, (std::vector<bool>{false, true}));
}
TEST(IterationView, TheGradientOfAFullSlopeIsElementwise) {
  GraphBuilder g;
  g.multi(OpKind::PReLUBackward, {g.input(f32, {4, 8}), g.input(f32, {4, 8}), g.input(f32, {4, 8})}, {}, {f32, f32});
  const IterationView view = view_of(g);
  EXPECT_FALSE(view.has_columns());
  EXPECT_FALSE(view.has_inner());
}

TEST(IterationView, ScalesPerGroupSplitTheDim) {
  GraphBuilder g;
  g.op(OpKind::DynamicDequantize, {g.input(s8, {4, 8}), g.input(f32, {4, 2})},
       {{"qtype", std::string("per_group")}, {"group_shape", std::vector<int64_t>{1, 4}}}, f32);
  const IterationView view = view_of(g);
  EXPECT_EQ(view.extents, (Dims{4, 2, 4}));
  EXPECT_EQ(view.inputs[0], (DimMap{{0, 1}, {1, 2}}));
  EXPECT_EQ(view.inputs[1], (DimMap{{0, 1}, {1, 1}}));
}

TEST(IterationView, DropoutReadsScalarsOfRankZero) {
  GraphBuilder g;
  g.multi(OpKind::Dropout, {g.input(f32, {4, 8}), g.scalar(s64), g.scalar(s64), g.scalar(f32)}, {}, {f32, u8});
  const IterationView view = view_of(g);
  EXPECT_THAT(view.inputs[3], IsEmpty());
  EXPECT_EQ(view.outputs[1], (DimMap{{0, 1}, {1, 1}}));
}

TEST(IterationView, ATablePerChannelNeedsAnAxisOfChannels) {
  GraphBuilder g;
  g.op(OpKind::PReLU, {g.input(f32, {}), g.input(f32, {kUnknownDim})});
  EXPECT_THAT(view_of(g).why_not, HasSubstr("per channel does not fit []"));
}

TEST(IterationView, LibraryOpsHaveNoNest) {
  GraphBuilder g;
  g.op(OpKind::MatMul, {g.input(f32, {4, 8}), g.input(f32, {8, 8})});
  EXPECT_THAT(view_of(g).why_not, HasSubstr("library"));
}

}  // namespace
}  // namespace lamina::testing
