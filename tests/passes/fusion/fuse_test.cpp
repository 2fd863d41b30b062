// Which ops share a loop nest. Each rule has a counterpart in which one condition is broken and nothing may be fused. A picture
// such as "add norm | matmul" lists the groups in execution order.
#include <ctime>
#include <iostream>

#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

// ---- norms and elementwise neighbours

//   x ─┐
//      add ──> norm ──> y
//   r ─┘ └──> sum (leaves)
TEST(FuseNorm, TakesTheResidualAddInFrontAlsoWhenTheSumLeaves) {
  GraphBuilder g;
  const auto sum = g.named("add").op(OpKind::Add, {g.input(f32, {4, 8}), g.input(f32, {4, 8})});
  g.named("norm");
  layer_norm(g, sum, 8);
  g.output(sum);
  const Graph graph = g.finish();
  EXPECT_THAT(fused(graph), HasSubstr("add norm"));
  EXPECT_THAT(fused(graph), Not(HasSubstr("|")));
}

TEST(FuseNorm, NestCoversOuterAndInnerDims) {
  GraphBuilder g;
  layer_norm(g, g.input(f32, {2, 3, 8}), 24, 1);
  const Graph graph = g.finish();
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.extents, (Dims{2, 3, 8}));
  EXPECT_EQ(group.inner, (std::vector<bool>{false, true, true}));
  EXPECT_EQ(group.input_maps.at({0, 0}), (DimMap{{0, 1}, {1, 1}, {2, 1}}));
  EXPECT_EQ(group.input_maps.at({0, 1}), (DimMap{{1, 2}})) << "a flat gamma runs along both inner dims";
}

TEST(FuseNorm, DimsOfExtentOneAreNoIterationDims) {
  GraphBuilder g;
  layer_norm(g, g.input(f32, {1, 3, 8}), 8);
  const Graph graph = g.finish();
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.extents, (Dims{3, 8}));
  EXPECT_EQ(group.input_maps.at({0, 0}), (DimMap{{0, 0}, {0, 1}, {1, 1}}));
}

TEST(FuseNorm, ARowOfOneElementKeepsAnInnerDim) {
  GraphBuilder g;
  layer_norm(g, g.input(f32, {3, 1}), 1);
  const Graph graph = g.finish();
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.extents, (Dims{3, 1}));
  EXPECT_EQ(group.inner, (std::vector<bool>{false, true}));
}

//   x ──> norm ──> gelu ──> mul ──> cast ──> quant ──> y
TEST(FuseNorm, TakesAChainBehindItDownToTheQuantize) {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 8}), 8));
  const auto gelu = g.named("gelu").op(OpKind::GELU, {norm});
  const auto mul = g.named("mul").op(OpKind::Multiply, {gelu, g.input(f32, {8})});
  const auto cast = g.named("cast").op(OpKind::TypeCast, {mul}, {}, bf16);
  const auto wide = g.named("wide").op(OpKind::TypeCast, {cast}, {}, f32);
  g.named("quant").op(OpKind::Quantize, {wide},
                      {{"scales", std::vector<float>{0.1F}}, {"zps", std::vector<int64_t>{0}}, {"axis", int64_t{1}}}, u8);
  EXPECT_EQ(fused(g.finish()), "norm gelu mul cast wide quant");
}

//   dy ─┐
//       relu' ──> norm' ──> add ──> dx
//   y ──┘           └──> diff_gamma, diff_beta (columns)
Graph backward_graph(bool gamma_read, Dims add_shape = {4, 8}) {
  GraphBuilder g;
  const auto relu = g.named("relu").op(OpKind::ReLUBackward, {g.input(f32, {4, 8}), g.input(f32, {4, 8})});
  const auto norm = g.named("norm").multi(OpKind::LayerNormBackward,
                                          {g.input(f32, {4, 8}), relu, g.input(f32, {4}), g.input(f32, {4}), g.input(f32, {8})},
                                          {}, {f32, f32, f32});
  g.named("add").op(OpKind::Add, {norm[0], g.input(f32, std::move(add_shape))});
  if (gamma_read) g.named("scale").op(OpKind::Abs, {norm[1]});
  return g.finish();
}

TEST(FuseNormBackward, TakesElementwiseNeighboursOnBothSides) { EXPECT_EQ(fused(backward_graph(false)), "relu norm add"); }

TEST(FuseNormBackward, LeavesReadersOfAColumnSumOutside) {
  const Graph graph = backward_graph(true);
  EXPECT_EQ(fused(graph), "relu norm add | scale");
  EXPECT_THAT(codes_of(graph, "scale"), Contains("alone.column_result"));
}

TEST(FuseNormBackward, ALargerConsumerIsAnotherNest) {
  const Graph graph = backward_graph(false, {2, 4, 8});
  EXPECT_EQ(fused(graph), "relu norm | add");
  EXPECT_THAT(codes_of(graph, "add"), Contains("alone.shape_mismatch"));
}

TEST(FuseNormBackward, GammaGradientsMapToInnerDims) {
  const Graph graph = backward_graph(false);
  const FusionGroup group = groups_of(graph).at(0);
  const int norm = find_op(graph, "norm");
  EXPECT_EQ(group.output_maps.at({norm, 1}), (DimMap{{1, 1}}));
  EXPECT_EQ(group.input_maps.at({norm, 2}), (DimMap{{0, 1}}));
}

// Statistics are outputs, and an op on them stays in the row: sqrt(variance) is one value per row.
// Sums over the rows, or over those of an entry, beside a norm that reads the same tensor.
//   dy ─┬─> sum                dy ─┬─> * ──> norm'
//       └─> norm' ──> dx           └─> other sum
Graph sums_over_outer_dims(const std::vector<std::vector<int64_t>>& axes, OpKind kind = OpKind::ReduceSum) {
  GraphBuilder g;
  const auto x = g.input(f32, {2, 3, 8}), dy = g.input(f32, {2, 3, 8});
  g.named("norm").multi(OpKind::LayerNormBackward, {x, dy, g.input(f32, {2, 3}), g.input(f32, {2, 3})}, {{"use_affine", false}},
                        {f32});
  for (const auto& summed : axes) g.named("sum").op(kind, {dy}, {{"axes", summed}});
  return g.finish();
}

TEST(FuseColumnSums, OverAllRowsAndOverThoseOfAnEntryJoinANorm) {
  EXPECT_EQ(fused(sums_over_outer_dims({{1}})), "norm sum");
  EXPECT_EQ(fused(sums_over_outer_dims({{0}})), "norm sum");
  EXPECT_EQ(fused(sums_over_outer_dims({{0, 1}, {1}, {1}})), "norm sum sum sum");
}
TEST(FuseColumnSums, EntriesOfOneKernelAreTheSame) { EXPECT_EQ(fused(sums_over_outer_dims({{1}, {0}})), "norm sum | sum"); }
TEST(FuseColumnSums, AreNotOverPartsOfARow) { EXPECT_EQ(fused(sums_over_outer_dims({{1, 2}})), "norm | sum"); }
TEST(FuseColumnSums, OtherReductionsStayOutside) {
  EXPECT_EQ(fused(sums_over_outer_dims({{1}}, OpKind::ReduceMax)), "norm | sum");
  EXPECT_EQ(fused(sums_over_outer_dims({{1}}, OpKind::ReduceMean)), "norm | sum");
}
TEST(FuseColumnSums, ReadersOfASumStayOutside) {
  GraphBuilder g;
  const auto x = g.input(f32, {2, 3, 8});
  const auto norm = (g.named("norm"), layer_norm(g, x, 8));
  const auto sum = g.named("sum").op(OpKind::ReduceSum, {norm}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  g.named("add").op(OpKind::Add, {norm, sum});
  g.output(norm);
  EXPECT_EQ(fused(g.finish()), "norm sum end3 | add");
}

//   dy ──┐                            the nest runs over rows, and the sum is a column output of it
//        relu' ──┬──> dx
//   x ───┘       └──> sum ──> cast
Graph bias_gradient(Dims shape, std::vector<int64_t> axes, OpKind kind = OpKind::ReduceSum) {
  GraphBuilder g;
  const auto dx = g.named("relu").op(OpKind::ReLUBackward, {g.input(f32, shape), g.input(f32, shape)});
  const auto sum = g.named("sum").op(kind, {dx}, {{"axes", std::move(axes)}});
  g.named("cast").op(OpKind::TypeCast, {sum}, {}, bf16);
  g.output(dx);
  return g.finish();
}
std::vector<bool> inner_of_sum(const Graph& graph) {
  for (const FusionGroup& group : groups_of(graph))
    if (std::find(group.ops.begin(), group.ops.end(), find_op(graph, "sum")) != group.ops.end()) return group.inner;
  return {};
}

TEST(FuseColumnSums, OfWhatAnElementwiseNestMakesAreColumnOutputs) {
  EXPECT_EQ(fused(bias_gradient({256, 64}, {0})), "relu sum end2 | cast");
  EXPECT_EQ(inner_of_sum(bias_gradient({256, 64}, {0})), (std::vector<bool>{false, true}));
  EXPECT_EQ(inner_of_sum(bias_gradient({2, 128, 64}, {0, 1})), (std::vector<bool>{false, false, true}));
  EXPECT_EQ(inner_of_sum(bias_gradient({2, 256, 64}, {1})), (std::vector<bool>{false, false, true}));  // entries
}
TEST(FuseColumnSums, OfFewRowsOrShortOnesReduceInnerDims) {
  EXPECT_EQ(inner_of_sum(bias_gradient({255, 64}, {0})), (std::vector<bool>{true, false}));
  EXPECT_EQ(inner_of_sum(bias_gradient({256, 63}, {0})), (std::vector<bool>{true, false}));
  EXPECT_EQ(inner_of_sum(bias_gradient({kUnknownDim, 64}, {0})), (std::vector<bool>{true, false}));
  EXPECT_EQ(inner_of_sum(bias_gradient({256, 64}, {1})), (std::vector<bool>{false, true}));  // a sum per row
  EXPECT_EQ(inner_of_sum(bias_gradient({256, 64}, {0}, OpKind::ReduceMax)), (std::vector<bool>{true, false}));
}
TEST(FuseColumnSums, OfATensorFromOutsideReduceInnerDims) {
  GraphBuilder g;
  g.named("sum").op(OpKind::ReduceSum, {g.input(f32, {256, 64})}, {{"axes", std::vector<int64_t>{0}}});
  EXPECT_EQ(inner_of_sum(g.finish()), (std::vector<bool>{true, false}));
}
//   x ──> relu ──┬──> sum ──┐
//                └──────────divide ──> y       one nest, which reduces first
TEST(FuseColumnSums, ThatTheSummedRowsReadReduceInnerDims) {
  GraphBuilder g;
  const auto relu = g.named("relu").op(OpKind::ReLU, {g.input(f32, {256, 64})});
  const auto sum = g.named("sum").op(OpKind::ReduceSum, {relu}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
  const auto root = g.named("sqrt").op(OpKind::Sqrt, {sum});
  g.named("divide").op(OpKind::Divide, {relu, root});
  EXPECT_EQ(fused(g.finish()), "relu sum sqrt divide");
}
TEST(FuseColumnSums, ThatTheSummedRowsReadThroughManyOpsReduceInnerDims) {
  GraphBuilder g;
  const auto relu = g.named("relu").op(OpKind::ReLU, {g.input(f32, {256, 64})});
  auto last = g.named("sum").op(OpKind::ReduceSum, {relu}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
  for (int i = 0; i < 20; ++i) last = g.op(OpKind::Tanh, {last});
  g.named("divide").op(OpKind::Divide, {relu, last});
  EXPECT_EQ(inner_of_sum(g.finish()), (std::vector<bool>{true, false}));
}

TEST(FuseNorm, TakesOpsOnItsStatistics) {
  GraphBuilder g;
  const auto norm = g.named("norm").multi(OpKind::LayerNorm, {g.input(f32, {4, 8}), g.input(f32, {8}), g.input(f32, {8})}, {},
                                          {f32, f32, f32});
  g.named("std").op(OpKind::Sqrt, {norm[2]});
  EXPECT_EQ(fused(g.finish()), "norm std");
}

// gamma' = abs(gamma) does not vary along the rows: each row recomputes it, unless an op outside the group reads it.
Graph scaled_gamma(bool leaves) {
  GraphBuilder g;
  const auto gamma = g.named("abs").op(OpKind::Abs, {g.input(f32, {8})});
  g.named("norm").op(OpKind::LayerNorm, {g.input(f32, {4, 8}), gamma, g.input(f32, {8})}, {{"keep_stats", false}});
  if (leaves) g.output(gamma);
  return g.finish();
}
TEST(FuseBroadcast, ASmallProducerIsMadeAgainInsideTheNest) { EXPECT_EQ(fused(scaled_gamma(false)), "abs norm"); }
TEST(FuseBroadcast, ASmallProducerThatLeavesStaysOutside) {
  const Graph graph = scaled_gamma(true);
  EXPECT_THAT(fused(graph), HasSubstr("| norm"));
  EXPECT_THAT(codes_of(graph, "abs"), Contains("alone.partial_output"));
}

// Positions in a sum depend only on its shape: a fused nest would walk all summed elements needlessly.
TEST(FuseBroadcast, PositionsInASumStayOutside) {
  GraphBuilder g;
  const auto src = g.input(f32, {4, 8});
  const auto sum = g.named("sum").op(OpKind::ReduceSum, {src}, {{"axes", Dims{0}}});
  g.named("positions").op(OpKind::GenIndex, {sum}, {{"axis", int64_t{0}}}, DataType::s32);
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "sum | positions");
  EXPECT_THAT(codes_of(graph, "positions"), Contains("alone.partial_output"));
}

TEST(FuseBroadcast, MakesOnlySoMuchAgain) {
  GraphBuilder g;
  auto gamma = g.input(f32, {8});
  for (int i = 0; i < 12; ++i) gamma = g.named("small" + std::to_string(i)).op(OpKind::Exp, {gamma});
  g.named("mul").op(OpKind::Multiply, {g.input(f32, {4, 8}), gamma});
  EXPECT_EQ(fused(g.finish()), "small0 small1 small2 small3 | small4 small5 small6 small7 small8 small9 small10 small11 mul");
}

// ---- inner axes

Graph two_norms(int64_t second_axis, int64_t second_size) {
  GraphBuilder g;
  const auto first = (g.named("first"), layer_norm(g, g.input(f32, {4, 6, 8}), 8));
  g.named("second");
  layer_norm(g, first, second_size, second_axis);
  return g.finish();
}
TEST(FuseInner, NormsOverTheSameAxesShareARow) { EXPECT_EQ(fused(two_norms(-1, 8)), "first second"); }
TEST(FuseInner, NormsOverOtherAxesDoNot) {
  const Graph graph = two_norms(1, 48);
  EXPECT_EQ(fused(graph), "first | second");
  EXPECT_THAT(codes_of(graph, "second"), Contains("alone.inner_axes_differ"));
}

//   x ──> max ──> sub ──> exp ──> sum ──> div ──> y
Graph softmax_written_out(std::vector<int64_t> sum_axes) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 6, 8});
  const auto max = g.named("max").op(OpKind::ReduceMax, {x}, {{"axes", std::vector<int64_t>{-1}}, {"keep_dims", true}});
  const auto sub = g.named("sub").op(OpKind::Subtract, {x, max});
  const auto exp = g.named("exp").op(OpKind::Exp, {sub});
  const auto sum = g.named("sum").op(OpKind::ReduceSum, {exp}, {{"axes", std::move(sum_axes)}, {"keep_dims", true}});
  g.named("div").op(OpKind::Divide, {exp, sum});
  return g.finish();
}
TEST(FuseReduction, SoftmaxInSmallOpsIsOneNest) { EXPECT_EQ(fused(softmax_written_out({2})), "max sub exp sum div"); }
TEST(FuseReduction, AReductionOfAnotherAxisIsNot) { EXPECT_EQ(fused(softmax_written_out({1})), "max sub exp sum | div"); }

TEST(FuseReduction, ResultsWithoutKeptDimsFeedOpsOnRows) {
  GraphBuilder g;
  const auto sum = g.named("sum").op(OpKind::ReduceSum, {g.input(f32, {4, 8})}, {{"axes", std::vector<int64_t>{1}}});
  g.named("log").op(OpKind::Log, {sum});
  EXPECT_EQ(fused(g.finish()), "sum log");
}

TEST(FuseReduction, DimsThatNoSharedValueHasAreFoundByPosition) {
  GraphBuilder g;
  const auto sum =
      g.named("sum").op(OpKind::ReduceSum, {g.input(f32, {4, 8})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  g.named("mul").op(OpKind::Multiply, {sum, g.input(f32, {4, 8})});
  EXPECT_EQ(fused(g.finish()), "sum mul");
}
TEST(FuseReduction, ButNotWhenTheExtentDiffers) {
  GraphBuilder g;
  const auto sum =
      g.named("sum").op(OpKind::ReduceSum, {g.input(f32, {4, 8})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  g.named("mul").op(OpKind::Multiply, {sum, g.input(f32, {4, 16})});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "sum | mul");
  EXPECT_THAT(codes_of(graph, "mul"), Contains("alone.shape_mismatch"));
}

// A reduction over an extent of 1 sums one element; inside a nest over 8 it would sum eight.
TEST(FuseReduction, AReductionOfAnExtentOfOneKeepsItsOwnNest) {
  GraphBuilder g;
  const auto sum =
      g.named("sum").op(OpKind::ReduceSum, {g.input(f32, {4, 8})}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  g.named("again").op(OpKind::ReduceSum, {sum}, {{"axes", std::vector<int64_t>{1}}, {"keep_dims", true}});
  EXPECT_EQ(fused(g.finish()), "sum | again");
}

TEST(FuseGroupNorm, SplitsTheChannelsOfItsNeighbours) {
  GraphBuilder g;
  const auto norm = g.named("norm").op(OpKind::GroupNorm, {g.input(f32, {2, 6, 5, 4}), g.input(f32, {6}), g.input(f32, {6})},
                                       {{"groups", int64_t{3}}, {"keep_stats", false}, {"data_format", std::string("NCX")}});
  g.named("add").op(OpKind::Add, {norm, g.input(f32, {2, 6, 5, 4})});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "norm add");
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.extents, (Dims{2, 3, 2, 5, 4}));
  EXPECT_EQ(group.inner, (std::vector<bool>{false, false, true, true, true}));
  EXPECT_EQ(group.input_maps.at({1, 1}), (DimMap{{0, 1}, {1, 2}, {3, 1}, {4, 1}}));
}

// ---- convexity

//   x ──> norm ──> mm ──> add
//           └─────────────┘
TEST(FuseConvexity, AnOpBehindALibraryOpDoesNotComeBack) {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 8}), 8));
  const auto mm = g.named("mm").op(OpKind::MatMul, {norm, g.input(f32, {8, 8})});
  g.named("add").op(OpKind::Add, {norm, mm});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "norm | mm | add");
  EXPECT_THAT(codes_of(graph, "add"), Contains("alone.would_cycle"));
  EXPECT_THAT(codes_of(graph, "mm"), Contains("alone.library_op"));
}
TEST(FuseConvexity, ADiamondOfElementwiseOpsIsOneGroup) {
  GraphBuilder g;
  const auto norm = (g.named("norm"), layer_norm(g, g.input(f32, {4, 8}), 8));
  const auto other = g.named("other").op(OpKind::Tanh, {norm});
  g.named("add").op(OpKind::Add, {norm, other});
  EXPECT_EQ(fused(g.finish()), "norm other add");
}

//   a ──> mm1 ──> b      Fusing a with d is convex, and so is b with c, but both groups together would form a cycle.
//   c ──> mm2 ──> d
TEST(FuseConvexity, GroupsAmongThemselvesHaveAnOrder) {
  GraphBuilder g;
  const auto a = g.named("a").op(OpKind::Abs, {g.input(f32, {4, 4})});
  const auto c = g.named("c").op(OpKind::Exp, {g.input(f32, {4, 4})});
  const auto mm1 = g.named("mm1").op(OpKind::MatMul, {a, g.input(f32, {4, 4})});
  const auto mm2 = g.named("mm2").op(OpKind::MatMul, {c, g.input(f32, {4, 4})});
  g.named("b").op(OpKind::Add, {mm1, c});
  g.named("d").op(OpKind::Add, {mm2, a});
  const Graph graph = g.finish();
  fused(graph);
}

// ---- elementwise

TEST(FuseElementwise, BroadcastBiasJoins) {
  GraphBuilder g;
  const auto bias = g.named("bias").op(OpKind::BiasAdd, {g.input(f32, {4, 8}), g.input(f32, {8})});
  g.named("relu").op(OpKind::ReLU, {bias});
  EXPECT_EQ(fused(g.finish()), "bias relu");
}

TEST(FuseElementwise, TwoReadersOfOneTensorAreSiblings) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 8});
  g.named("exp").op(OpKind::Exp, {x});
  g.named("abs").op(OpKind::Abs, {x});
  const Graph graph = g.finish();
  EXPECT_EQ(fused(graph), "exp abs");
  EXPECT_THAT(codes_of(graph, "abs"), Contains("fused.sibling"));
}
TEST(FuseElementwise, ReadersOfOneSmallTensorAreNot) {
  GraphBuilder g;
  const auto bias = g.input(f32, {8});
  g.named("one").op(OpKind::Add, {g.input(f32, {4, 8}), bias});
  g.named("two").op(OpKind::Add, {g.input(f32, {4, 8}), bias});
  EXPECT_EQ(fused(g.finish()), "one | two");
}

TEST(FuseElementwise, UnknownDimsFuseWhereTheyAreTheSameDim) {
  GraphBuilder g;
  const auto x = g.input(f32, {kUnknownDim, 8});
  const auto norm = (g.named("norm"), layer_norm(g, x, 8));
  g.named("relu").op(OpKind::ReLU, {norm});
  EXPECT_EQ(fused(g.finish()), "norm relu");
}

TEST(FuseElementwise, UnknownRanksFuseAsOneDim) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input_of_unknown_rank(f32)});
  g.named("abs").op(OpKind::Abs, {exp});
  EXPECT_EQ(fused(g.finish()), "exp abs");
}

TEST(FuseElementwise, F64MeetsNoOtherFloat) {
  GraphBuilder g;
  const auto wide = g.named("wide").op(OpKind::Abs, {g.input(f64, {4, 8})});
  g.named("more").op(OpKind::Exp, {wide});
  EXPECT_EQ(fused(g.finish()), "wide more");
}

// ---- End, policy, capability

TEST(FuseMarkers, EndStaysWithTheOpThatMakesItsValue) {
  GraphBuilder g;
  const auto exp = g.named("exp").op(OpKind::Exp, {g.input(f32, {4, 8})});
  g.named("mm").op(OpKind::MatMul, {exp, g.input(f32, {8, 8})});
  g.named("end").multi(OpKind::End, {exp}, {}, {});
  EXPECT_EQ(fused(g.finish()), "exp end | mm");
}

TEST(FusePolicy, DebugLeavesEveryOpAlone) {
  const Graph graph = backward_graph(false);
  const auto groups = fuse(graph, all_runnable(graph), false);
  EXPECT_EQ(picture(graph, groups), "relu | norm | add");
  EXPECT_EQ(groups[0].reasons[0][0].code, "alone.policy_debug");
}

TEST(FuseReasons, NameBothOpsAndTheValue) {
  const Graph graph = backward_graph(false, {2, 4, 8});
  for (const FusionGroup& group : groups_of(graph)) {
    if (group.ops[0] != find_op(graph, "add")) continue;
    std::string texts;
    for (const Reason& reason : group.reasons[0]) texts += reason.text + "\n";
    EXPECT_THAT(texts, HasSubstr("not fused with LayerNormBackward \"norm\": value "));
    EXPECT_THAT(texts, HasSubstr("(f32[4, 8]) does not map its dims to the loop nest over [4, 8]"));
  }
}

// ---- size

// Processor time, which does not depend on the load of the machine.
double milliseconds_since(std::clock_t start) {
  return 1000.0 * static_cast<double>(std::clock() - start) / static_cast<double>(CLOCKS_PER_SEC);
}

TEST(FuseTime, TenThousandOps) {
  GraphBuilder g;
  auto x = g.input(f32, {4, 8});
  for (int i = 0; i < 10000; ++i) x = g.op(i % 3 == 0 ? OpKind::Exp : OpKind::Abs, {x});
  const Graph graph = g.finish();
  const std::clock_t start = std::clock();
  const auto groups = groups_of(graph);
  const double chain = milliseconds_since(start);
  EXPECT_EQ(groups.size(), 1U);
  std::cout << "chain of 10000 ops: fused in " << chain << " ms\n";
}

TEST(FuseTime, ResidualNetworkOfTenThousandOps) {
  GraphBuilder g;
  auto x = g.input(f32, {16, 8});
  const auto weights = g.input(f32, {8, 8});
  for (int i = 0; i < 2500; ++i) {
    const auto norm = layer_norm(g, x, 8);
    const auto mm = g.op(OpKind::MatMul, {norm, weights});
    x = g.op(OpKind::Add, {x, g.op(OpKind::GELU, {mm})});
  }
  const Graph graph = g.finish();
  const std::clock_t start = std::clock();
  const auto groups = groups_of(graph);
  const double time = milliseconds_since(start);
  expect_sound(graph, groups);
  EXPECT_EQ(groups.size(), 5001U);  // norm | (mm | gelu add norm) * 2499 | mm | gelu add
  std::cout << "residual network of 10000 ops: fused in " << time << " ms\n";
  const std::clock_t begin = std::clock();
  EXPECT_EQ(partition_graph(graph, PartitionPolicy::fusion, RunsAll{}).size(), 5001U);
  const double whole = milliseconds_since(begin);
  std::cout << "residual network of 10000 ops: all passes took " << whole << " ms\n";
}

}  // namespace
}  // namespace lamina::testing
