// Older kinds and spellings become current ones; ops that change nothing are removed, unless a graph output needs them.
#include "passes/canonicalize.h"

#include "interface/json/json.h"
#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

Graph canonical(GraphBuilder& g) {
  const Graph source = g.finish();
  const auto graph = canonicalize(source);
  if (graph) verify_graph(*graph, "canonicalize");
  return graph ? *graph : source;
}

std::vector<uint64_t> ids(const Graph& graph, const std::vector<ValueIndex>& values) {
  std::vector<uint64_t> result;
  for (const ValueIndex value : values) result.push_back(value == kNoValue ? kNoTensor : graph.tensor(value).id);
  return result;
}

std::string kinds(const Graph& graph) {
  std::string text;
  for (const Op& op : graph.ops()) text += (text.empty() ? "" : " ") + std::string(name_of(op.kind));
  return text;
}

// ---- LayerNormBackprop

//   input_forward, output_delta, gamma, beta, mean, variance ==> src, diff_dst, mean, variance, gamma, beta
TEST(CanonicalizeBackprop, BecomesLayerNormBackwardWithItsPortsInTodaysOrder) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 8}), dy = g.input(f32, {4, 8}), gamma = g.input(f32, {8}), beta = g.input(f32, {8}),
             mean = g.input(f32, {4}), variance = g.input(f32, {4});
  const auto out =
      g.multi(OpKind::LayerNormBackprop, {x, dy, gamma, beta, mean, variance}, {{"epsilon", 0.5F}}, {f32, f32, f32});
  const Graph graph = canonical(g);
  const Op& op = graph.ops().at(0);
  EXPECT_EQ(op.kind, OpKind::LayerNormBackward);
  EXPECT_EQ(ids(graph, op.inputs), (std::vector<uint64_t>{x, dy, mean, variance, gamma, beta}));
  EXPECT_EQ(ids(graph, op.outputs), out);
  EXPECT_EQ(op.attribute<float>("epsilon"), 0.5F);
  EXPECT_EQ(op.attribute<std::string>("stats_kind"), "variance");
}

TEST(CanonicalizeBackprop, WithoutStatisticsAndAffineItKeepsTwoInputs) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 8}), dy = g.input(f32, {4, 8});
  const auto out = g.multi(OpKind::LayerNormBackprop, {x, dy}, {{"use_affine", false}, {"use_stats", false}}, {f32});
  const Graph graph = canonical(g);
  EXPECT_EQ(ids(graph, graph.ops()[0].inputs), (std::vector<uint64_t>{x, dy}));
  EXPECT_EQ(ids(graph, graph.ops()[0].outputs), out);
  EXPECT_FALSE(graph.ops()[0].attribute<bool>("use_stats"));
}

TEST(CanonicalizeBackprop, AnIntegerInputStaysAnInteger) {
  GraphBuilder g;
  const auto x = g.input(s32, {4, 8}), dy = g.input(f32, {4, 8});
  g.multi(OpKind::LayerNormBackprop, {x, dy}, {{"use_affine", false}, {"use_stats", false}}, {f32});
  const Graph graph = canonical(g);
  EXPECT_EQ(graph.ops()[0].kind, OpKind::LayerNormBackward);
  EXPECT_EQ(graph.tensor(graph.ops()[0].inputs[0]).dtype, s32);
}

// ---- LayerNormGrad

//   dy, x, variance, mean, gamma[3, 8] ==> src = x, diff_dst = dy, mean, variance, gamma with two normalised axes
TEST(CanonicalizeGrad, TakesTheNormalisedAxesFromTheRankOfGamma) {
  GraphBuilder g;
  const auto dy = g.input(f32, {4, 3, 8}), x = g.input(f32, {4, 3, 8}), variance = g.input(f32, {4, 1, 1}),
             mean = g.input(f32, {4, 1, 1}), gamma = g.input(f32, {3, 8});
  const auto out = g.multi(OpKind::LayerNormGrad, {dy, x, variance, mean, gamma}, {}, {f32, f32, f32});
  const Graph graph = canonical(g);
  const Op& op = graph.ops()[0];
  EXPECT_EQ(op.kind, OpKind::LayerNormBackward);
  EXPECT_EQ(ids(graph, op.inputs), (std::vector<uint64_t>{x, dy, mean, variance, gamma}));
  EXPECT_EQ(ids(graph, op.outputs), out);
  EXPECT_EQ(op.attribute<int64_t>("begin_norm_axis"), -2);
}

TEST(CanonicalizeGrad, StatisticsWithTrailingOnesVaryAlongTheLeadingDimsOnly) {
  GraphBuilder g;
  g.multi(OpKind::LayerNormGrad,
          {g.input(f32, {4, 3, 8}), g.input(f32, {4, 3, 8}), g.input(f32, {4, 1, 1}), g.input(f32, {4, 1, 1}),
           g.input(f32, {3, 8})},
          {}, {f32, f32, f32});
  const Graph graph = canonical(g);
  const FusionGroup group = groups_of(graph).at(0);
  EXPECT_EQ(group.input_maps.at({0, 2}), (DimMap{{0, 1}, {0, 0}, {0, 0}}));
}

TEST(CanonicalizeGrad, OutputsThatTheMaskLeavesOutAreLeftOut) {
  GraphBuilder g;
  const auto out =
      g.multi(OpKind::LayerNormGrad,
              {g.input(f32, {4, 8}), g.input(f32, {4, 8}), g.input(f32, {4, 1}), g.input(f32, {4, 1}), g.input(f32, {8})},
              {{"output_mask", std::vector<int64_t>{0, 0, 1}}}, {f32});
  const Graph graph = canonical(g);
  EXPECT_EQ(ids(graph, graph.ops()[0].outputs), (std::vector<uint64_t>{kNoTensor, kNoTensor, out[0]}));
}

// ---- attributes made explicit

TEST(CanonicalizeAttributes, AnEmptyOrderReversesTheAxes) {
  GraphBuilder g;
  g.op(OpKind::Abs, {g.op(OpKind::StaticTranspose, {g.input(f32, {4, 4, 4})}, {{"order", std::vector<int64_t>{}}})});
  const Graph graph = canonical(g);
  EXPECT_EQ(kinds(graph), "StaticTranspose Abs");
  EXPECT_EQ(graph.ops()[0].attribute<std::vector<int64_t>>("order"), (std::vector<int64_t>{2, 1, 0}));
}
TEST(CanonicalizeAttributes, AnEmptyOrderOfUnknownRankStays) {
  GraphBuilder g;
  g.op(OpKind::Abs, {g.op(OpKind::StaticTranspose, {g.input_of_unknown_rank(f32)}, {{"order", std::vector<int64_t>{}}})});
  EXPECT_EQ(kinds(canonical(g)), "StaticTranspose Abs");
}
TEST(CanonicalizeAttributes, AnEmptyOrderOfOneAxisReversesNothing) {
  GraphBuilder g;
  g.op(OpKind::StaticTranspose, {g.input(f32, {4})}, {{"order", std::vector<int64_t>{}}});
  EXPECT_EQ(canonical(g).ops()[0].attribute<std::vector<int64_t>>("order"), std::vector<int64_t>{0});
}

TEST(CanonicalizeAttributes, AxesOfAKnownConstantBecomeTheAttribute) {
  for (const OpKind kind : {OpKind::ReduceL1, OpKind::ReduceL2, OpKind::ReduceMax, OpKind::ReduceMean, OpKind::ReduceMin,
                            OpKind::ReduceProd, OpKind::ReduceSum}) {
    GraphBuilder g;
    const auto dst = g.op(kind, {g.input(f32, {4, 8}), g.number(-1, s32, {1})}, {{"keep_dims", true}});
    const Graph graph = canonical(g);
    EXPECT_EQ(graph.ops()[0].attribute<std::vector<int64_t>>("axes"), std::vector<int64_t>{-1});
    EXPECT_EQ(graph.ops()[0].inputs.size(), 1U);
    EXPECT_EQ(graph.tensor(*graph.find_value(dst)).shape, (Dims{4, 1}));
  }
}
TEST(CanonicalizeAttributes, AxesThatAreNotKnownStayAnInput) {
  GraphBuilder g;
  g.op(OpKind::ReduceSum, {g.input(f32, {4, 8}), g.constant(s32, {1})});
  EXPECT_EQ(canonical(g).ops()[0].inputs.size(), 2U);
}
TEST(CanonicalizeAttributes, SeveralAxesInOneTensorStayAnInput) {
  GraphBuilder g;  // one element fills the axes tensor, so it cannot name two axes
  g.op(OpKind::ReduceSum, {g.input(f32, {4, 8}), g.number(1, s32, {2})});
  EXPECT_EQ(canonical(g).ops()[0].inputs.size(), 2U);
}

// ---- older kinds

TEST(CanonicalizeOlderKinds, OfDumpsAreReadAsTodays) {
  const std::string dump = R"({"version": "0.6.0", "graph": [{"id": 1, "name": "old", "kind": "BiasAddBackprop",
      "inputs": [{"id": 0, "dtype": "f32", "shape": [2, 3, 8], "stride": [24, 8, 1], "layout_type": "strided",
                  "property_type": "undef"}],
      "outputs": [{"id": 1, "dtype": "f32", "shape": [8], "stride": [1], "layout_type": "strided",
                   "property_type": "undef"}]}]})";
  Graph graph = read_graph_json(dump, "old.json");
  graph.finalize();
  const auto partitions = partition_graph(graph, PartitionPolicy::fusion, RunsAll{});
  const Op& op = partitions.at(0).graph->ops()[0];
  EXPECT_EQ(op.kind, OpKind::BiasAddBackward);
  EXPECT_EQ(op.attribute<std::string>("data_format"), "NXC");  // the default, which older dumps omit
}

// ---- ops that change nothing

//   x ──> nothing ──> abs ──> y   ==>   x ──> abs ──> y
std::string around(OpKind kind, const Attributes& attributes, DataType dtype = f32, bool is_output = false) {
  GraphBuilder g;
  const auto same = g.op(kind, {g.input(f32, {4, 8})}, attributes, dtype);
  g.op(OpKind::Abs, {same});
  if (is_output) g.output(same);
  return kinds(canonical(g));
}
TEST(CanonicalizeNothing, DropsWhatChangesNothing) {
  EXPECT_EQ(around(OpKind::Reorder, {}), "Abs");
  EXPECT_EQ(around(OpKind::StaticTranspose, {{"order", std::vector<int64_t>{0, -1}}}), "Abs");
  EXPECT_EQ(around(OpKind::StaticReshape, {{"shape", std::vector<int64_t>{4, -1}}, {"special_zero", false}}), "Abs");
}
TEST(CanonicalizeNothing, KeepsWhatChangesSomething) {
  EXPECT_EQ(around(OpKind::TypeCast, {}, bf16), "TypeCast Abs");
  EXPECT_EQ(around(OpKind::StaticTranspose, {{"order", std::vector<int64_t>{1, 0}}}), "StaticTranspose Abs");
  EXPECT_EQ(around(OpKind::StaticReshape, {{"shape", std::vector<int64_t>{8, 4}}, {"special_zero", false}}),
            "StaticReshape Abs");
}
TEST(CanonicalizeNothing, KeepsWhatMakesAGraphOutput) {
  EXPECT_EQ(around(OpKind::Reorder, {}, f32, true), "Reorder Abs End");
  GraphBuilder g;
  g.op(OpKind::Reorder, {g.input(f32, {4, 8})});
  EXPECT_EQ(kinds(canonical(g)), "Reorder");
}
//   x ──> nothing ──> abs ──> y
//            └──> wildcard            the caller computes the wildcard from what `nothing` returns
TEST(CanonicalizeNothing, KeepsWhatAnOpaqueOpReads) {
  GraphBuilder g;
  const auto same = g.op(OpKind::Reorder, {g.input(f32, {4, 8})});
  g.op(OpKind::Abs, {same});
  g.op(OpKind::Wildcard, {same});
  EXPECT_EQ(kinds(canonical(g)), "Reorder Abs Wildcard");
}

Attributes slice_of(std::vector<int64_t> starts, std::vector<int64_t> ends) {
  return {{"starts", std::move(starts)}, {"ends", std::move(ends)}};
}
TEST(CanonicalizeNothing, DropsASliceOfEverything) {
  GraphBuilder g;
  g.op(OpKind::Abs, {g.op(OpKind::Slice, {g.input(f32, {4, 8})}, slice_of({0, 0}, {4, 100}))});
  EXPECT_EQ(kinds(canonical(g)), "Abs");
}
TEST(CanonicalizeNothing, KeepsASliceOfAPart) {
  GraphBuilder g;
  g.op(OpKind::Abs, {g.op(OpKind::Slice, {g.input(f32, {4, 8})}, slice_of({1}, {4}))});
  EXPECT_EQ(kinds(canonical(g)), "Slice Abs");
}

//   x [8, 1] ──> expand [8, 16] ──> add
//   y [8, 16] ───────────────────────┘
std::string expanded_and_added(Dims other, bool other_is_expanded) {
  GraphBuilder g;
  const Attributes shape{{"shape", std::vector<int64_t>{8, 16}}};
  const auto x = g.op(OpKind::Expand, {g.input(f32, {8, 1})}, shape);
  const auto y = g.input(f32, std::move(other));
  g.op(OpKind::Add, {x, other_is_expanded ? g.op(OpKind::Expand, {y}, shape) : y});
  return kinds(canonical(g));
}
TEST(CanonicalizeExpand, GoesWhereItsReadersBroadcastByThemselves) { EXPECT_EQ(expanded_and_added({8, 16}, false), "Add"); }
TEST(CanonicalizeExpand, StaysWhereNobodyElseHasTheWholeShape) {
  EXPECT_EQ(expanded_and_added({1, 16}, false), "Expand Add");
  EXPECT_EQ(expanded_and_added({1, 16}, true), "Expand Expand Add");
}
// cond, Expand(scalar), other -> Select
std::string expanded_and_selected(const Dims& other) {
  GraphBuilder g;
  const auto cond = g.input(DataType::boolean, {8, 16});
  const auto x = g.op(OpKind::Expand, {g.input(f32, {1})}, {{"shape", std::vector<int64_t>{8, 16}}});
  g.op(OpKind::Select, {cond, x, g.input(f32, other)}, {}, f32);
  return kinds(canonical(g));
}
TEST(CanonicalizeExpand, GoesBeforeASelectWhoseOtherValueHasTheShape) { EXPECT_EQ(expanded_and_selected({8, 16}), "Select"); }
TEST(CanonicalizeExpand, StaysBeforeASelectOfWhichOnlyTheConditionHasTheShape) {
  EXPECT_EQ(expanded_and_selected({1}), "Expand Select");
}

TEST(CanonicalizeExpand, LeavesExtentsThatSrcHasToSrc) {
  GraphBuilder g;
  g.op(OpKind::Expand, {g.input(f32, {8, 1, 4})}, {{"shape", std::vector<int64_t>{2, 8, 16, -1}}});
  EXPECT_EQ(canonical(g).ops()[0].attribute<std::vector<int64_t>>("shape"), (std::vector<int64_t>{2, 1, 16, -1}));
}

TEST(CanonicalizeNothing, FollowsAChainOfThem) {
  GraphBuilder g;
  auto x = g.input(f32, {4, 8});
  const auto first = x;
  for (int i = 0; i < 1000; ++i) x = g.op(OpKind::Reorder, {x});
  g.op(OpKind::Abs, {x});
  const Graph graph = canonical(g);
  EXPECT_EQ(kinds(graph), "Abs");
  EXPECT_EQ(ids(graph, graph.ops()[0].inputs), (std::vector<uint64_t>{first}));
}

// ---- scales of a grouped ConvTranspose

// s8 weights with two scales on their axis of output channels, whose extent is 1  ->  Dequantize  ->  ConvTranspose in 2 groups
GraphBuilder grouped_conv_transpose(const Dims& weights, int64_t axis, const std::string& format, int64_t groups = 2) {
  GraphBuilder g;
  const auto src = g.input(f32, {1, 3, 4});  // NXC
  const auto quantized = g.input(DataType::s8, weights);
  const Attributes scales{{"qtype", std::string("per_channel")},
                          {"axis", axis},
                          {"scales", std::vector<float>{0.5F, 2.0F}},
                          {"zps", std::vector<int64_t>{0, 1}}};
  const auto dequantized = g.op(OpKind::Dequantize, {quantized}, scales, f32);
  const std::vector<int64_t> one{1}, zero{0};
  g.op(OpKind::ConvTranspose, {src, dequantized},
       {{"strides", one},
        {"pads_begin", zero},
        {"pads_end", zero},
        {"dilations", one},
        {"groups", groups},
        {"weights_format", format}});
  return g;
}

TEST(CanonicalizeGroupScales, StandAlongTheInputChannelsOfTheirGroup) {
  for (const auto& [weights, axis, format, inputs_axis] :
       {std::tuple{Dims{4, 1, 3}, int64_t{1}, "IOX", int64_t{0}}, std::tuple{Dims{3, 1, 4}, int64_t{-2}, "XOI", int64_t{2}}}) {
    GraphBuilder g = grouped_conv_transpose(weights, axis, format);
    const Graph graph = canonical(g);
    const Op& op = graph.ops().at(0);
    EXPECT_EQ(op.attribute<int64_t>("axis"), inputs_axis);
    EXPECT_EQ(op.attribute<std::vector<float>>("scales"), (std::vector<float>{0.5F, 0.5F, 2.0F, 2.0F}));
    EXPECT_EQ(op.attribute<std::vector<int64_t>>("zps"), (std::vector<int64_t>{0, 0, 1, 1}));
  }
}

TEST(CanonicalizeGroupScales, StayWhereTheyMeanNothing) {
  // one group too many for the scales, and scales along an axis other than the output channels
  GraphBuilder more_groups = grouped_conv_transpose({4, 1, 3}, 1, "IOX", 4), taps = grouped_conv_transpose({4, 2, 1}, 2, "IOX");
  for (GraphBuilder* g : {&more_groups, &taps}) {
    const Graph graph = canonical(*g);
    EXPECT_EQ(graph.ops().at(0).attribute<std::vector<float>>("scales").size(), 2U);
  }
}

}  // namespace
}  // namespace lamina::testing
