// Which groups run in tiles. Each rule has a counterpart in which one condition is broken.
#include "passes/tiling/tile_regions.h"

#include <cmath>

#include "interface/op_schema.h"
#include "passes/join_groups.h"
#include "passes/passes_test_support.h"

namespace lamina::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

// "qk softmax pv / 64": the ops of each region in order and the rows of a tile; "128x512" are rows and columns; "+" lists the
// values that tiles add to; " | " separates regions.
std::string tiled(const Graph& graph) {
  const std::vector<FusionGroup> groups = groups_of(graph);
  std::string text;
  for (const TileRegion& region : tile_regions(graph, groups, graph.outputs(), {.cache_bytes = 1 << 20})) {
    if (!text.empty()) text += " | ";
    std::vector<int> ops;
    for (const size_t group : region.groups) ops.insert(ops.end(), groups[group].ops.begin(), groups[group].ops.end());
    std::sort(ops.begin(), ops.end());
    for (size_t i = 0; i < ops.size(); ++i) text += join(i == 0 ? "" : " ", graph.op(ops[i]).name);
    if (region.rows > 0) text += join(" / ", region.rows);
    if (region.columns > 0) text += join("x", region.columns);
    for (const auto& [value, loop] : region.sums) text += join(" + ", graph.op(graph.value(value).producer.op).name);
    if (region.segments > 1) text += join(" in ", region.segments);
  }
  return text;
}

std::string why_not(const Graph& graph) {
  for (const TileRegion& region : tile_regions(graph, groups_of(graph), graph.outputs(), {.cache_bytes = 1 << 20})) {
    if (!region.why_not.empty()) return region.why_not;
  }
  return "";
}

struct Attention {
  int64_t batch = 2, heads = 4, queries = 256, keys = 384, width = 64;
  int64_t axis = -1;
};

uint64_t attention(GraphBuilder& g, const Attention& a) {
  const auto q = g.input(f32, {a.batch, a.heads, a.queries, a.width}), k = g.input(f32, {a.batch, a.heads, a.keys, a.width}),
             v = g.input(f32, {a.batch, a.heads, a.keys, a.width});
  const auto scores = g.named("qk").op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto scaled = g.named("scale").op(OpKind::Multiply, {scores, g.input(f32, {1})});
  const auto weights = g.named("softmax").op(OpKind::SoftMax, {scaled}, {{"axis", a.axis}});
  return g.named("pv").op(OpKind::MatMul, {weights, v});
}

//   q ─┐
//      qk ──> scale ──> softmax ──> pv ──> dst
//   k ─┘                        v ──┘
TEST(TileRegions, TakeAttentionThroughInTilesOfQueries) {
  GraphBuilder g;
  attention(g, {});
  EXPECT_EQ(tiled(g.finish()), "qk scale softmax pv / 64");
}

// Queries of eight bits with a scale for each group of entries: `groups` counts the groups along each axis.
Graph attention_on_groups(const Dims& groups) {
  GraphBuilder g;
  const auto q = g.input(DataType::u8, {2, 4, 256, 64}), k = g.input(f32, {2, 4, 384, 64}), v = g.input(f32, {2, 4, 384, 64});
  Dims counts = {2, 4, 256, 64};
  for (size_t axis = 0; axis < counts.size(); ++axis) counts[axis] /= groups[axis];
  const auto queries = g.named("queries").op(OpKind::DynamicDequantize, {q, g.input(f32, counts)},
                                             {{"qtype", std::string("per_group")}, {"group_shape", groups}}, f32);
  const auto scores = g.named("qk").op(OpKind::MatMul, {queries, k}, {{"transpose_b", true}});
  g.named("pv").op(OpKind::MatMul, {g.named("softmax").op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}}), v});
  return g.finish();
}

TEST(TileRegions, CutNoAxisAlongWhichThereAreGroups) {
  EXPECT_THAT(tiled(attention_on_groups({1, 1, 1, 32})), HasSubstr("queries qk softmax"));
  for (const Dims& groups : {Dims{2, 1, 1, 32}, Dims{1, 4, 1, 32}, Dims{1, 1, 16, 32}})
    EXPECT_THAT(tiled(attention_on_groups(groups)), Not(HasSubstr("queries qk"))) << describe(groups);
}

TEST(TileRegions, LongerKeysMeanFewerRows) {
  GraphBuilder g;
  attention(g, {.keys = 32768});
  EXPECT_EQ(tiled(g.finish()), "qk scale softmax pv / 16");
}

TEST(TileRegions, EndWhereATileWouldNotFitTheCaches) {
  GraphBuilder g;
  attention(g, {.keys = 100000});
  const Graph graph = g.finish();
  EXPECT_EQ(tiled(graph), "qk | scale softmax | pv");
  EXPECT_THAT(why_not(graph), HasSubstr("a tile of 16 rows has 12800000 bytes, allowed is at most 5242880"));
}

// Heads that share keys and have few queries each: the rows of a tile are the heads.
TEST(TileRegions, TakeFewQueriesOfHeadsThatShareKeysTogether) {
  const auto graph = [](int64_t groups, int64_t heads, int64_t queries, bool are_shared) {
    GraphBuilder g;
    const Dims kv{2, groups, are_shared ? 1 : heads, 384, 64};
    const auto q = g.input(f32, {2, groups, heads, queries, 64});
    const auto scores = g.named("qk").op(OpKind::MatMul, {q, g.input(f32, kv)}, {{"transpose_b", true}});
    const auto weights = g.named("softmax").op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}});
    g.named("pv").op(OpKind::MatMul, {weights, g.input(f32, kv)});
    return g.finish();
  };
  EXPECT_EQ(tiled(graph(4, 6, 2, true)), "qk softmax pv / 6");
  EXPECT_EQ(tiled(graph(4, 6, 2, false)), "qk softmax pv / 2");
  EXPECT_EQ(tiled(graph(4, 6, 100, true)), "qk softmax pv / 100");
  EXPECT_EQ(tiled(graph(2, 6, 2, true)), "qk softmax pv / 2");  // else there would be four tiles
}

// ---- causal masks

struct Mask {
  OpKind compare = OpKind::GreaterEqual;
  int64_t row_axis = -2;
  double hidden = -INFINITY;
  bool scores_are_hidden = false, multiplies_after = false, keeps_weights = false, drops = false;
};

Graph masked(const Mask& m) {
  GraphBuilder g;
  const Dims shape{2, 4, 256, 64};
  const auto q = g.input(f32, shape), k = g.input(f32, shape), v = g.input(f32, shape);
  auto scores = g.op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto row = g.op(OpKind::GenIndex, {scores}, {{"axis", m.row_axis}}, DataType::s32);
  const auto column = g.op(OpKind::GenIndex, {scores}, {{"axis", int64_t{-1}}}, DataType::s32);
  const auto seen = g.op(m.compare, {row, column}, {}, DataType::boolean);
  const auto hidden = g.number(m.hidden);
  scores = m.scores_are_hidden ? g.op(OpKind::Select, {seen, hidden, scores}, {}, f32)
                               : g.op(OpKind::Select, {seen, scores, hidden}, {}, f32);
  if (m.multiplies_after) scores = g.op(OpKind::Multiply, {scores, g.input(f32, {1})});
  auto weights = g.op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}});
  if (m.keeps_weights) g.output(weights);
  if (m.drops)
    weights = g.multi(OpKind::Dropout, {weights, g.scalar(DataType::s64), g.number(7, DataType::s64), g.number(0.5)}, {},
                      {f32, DataType::undef})[0];
  g.op(OpKind::MatMul, {weights, v});
  return g.finish();
}

std::vector<int64_t> lengths(const Mask& mask) {
  const Graph graph = masked(mask);
  for (const TileRegion& region : tile_regions(graph, groups_of(graph), graph.outputs(), {.cache_bytes = 1 << 20}))
    if (region.mask) return region.mask->lengths;
  return {};
}

TEST(CausalMasks, LetTilesLeaveOutColumns) {
  const std::vector<int64_t> all{64, 128, 192};
  EXPECT_EQ(lengths({}), all);
  EXPECT_EQ(lengths({.compare = OpKind::Greater}), all);
  EXPECT_EQ(lengths({.compare = OpKind::LessEqual, .scores_are_hidden = true}), all);  // rows <= columns are hidden
}

TEST(CausalMasks, AreNotFoundIfOneConditionIsBroken) {
  const std::vector<int64_t> none;
  EXPECT_EQ(lengths({.compare = OpKind::LessEqual}), none);  // hides the first columns
  EXPECT_EQ(lengths({.compare = OpKind::GreaterEqual, .scores_are_hidden = true}), none);
  EXPECT_EQ(lengths({.compare = OpKind::Equal}), none);
  EXPECT_EQ(lengths({.row_axis = 1}), none);  // heads
  EXPECT_EQ(lengths({.hidden = -1e30}), none);
  EXPECT_EQ(lengths({.multiplies_after = true}), none);  // by 0, -infinity would become NaN
  EXPECT_EQ(lengths({.keeps_weights = true}), none);     // all columns are stored
  EXPECT_EQ(lengths({.drops = true}), none);
}

// The softmax normalises along the queries, so each row depends on all others.
TEST(TileRegions, DoNotCutWhatIsReduced) {
  GraphBuilder g;
  attention(g, {.axis = 2});
  const Graph graph = g.finish();
  EXPECT_EQ(tiled(graph), "qk | scale softmax | pv");
  EXPECT_THAT(why_not(graph), HasSubstr("reduces an axis that is cut"));
}

TEST(TileRegions, NeedAFewTiles) {
  GraphBuilder g;
  attention(g, {.batch = 1, .heads = 1, .queries = 16});
  const Graph graph = g.finish();
  EXPECT_EQ(tiled(graph), "qk | scale softmax | pv");
  EXPECT_THAT(why_not(graph), HasSubstr("tiles, needed are 8"));
}

// A reshape after pv merges heads: its rows are no longer tokens of one head.
TEST(TileRegions, EndAtAReshape) {
  GraphBuilder g;
  const auto dst = attention(g, {});
  g.named("join").op(OpKind::StaticReshape, {dst}, {{"shape", std::vector<int64_t>{8, 256, 64}}, {"special_zero", false}});
  EXPECT_THAT(tiled(g.finish()), HasSubstr("qk scale softmax pv / 64"));
}

//   mask [2, 1, from, 384] ──> part ──> wide ──> add, between qk and softmax
std::string tiled_with_a_part_of_a_mask(int64_t queries_of_mask, int64_t keys_of_mask) {
  GraphBuilder g;
  const auto q = g.input(f32, {2, 4, 256, 64}), k = g.input(f32, {2, 4, 384, 64}), v = g.input(f32, {2, 4, 384, 64});
  const auto scores = g.named("qk").op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto part = g.named("part").op(
      OpKind::Slice, {g.input(f32, {2, 4, queries_of_mask, keys_of_mask})},
      {{"starts", std::vector<int64_t>{0, 0}}, {"ends", std::vector<int64_t>{256, 384}}, {"axes", std::vector<int64_t>{2, 3}}});
  const auto masked = g.named("add").op(OpKind::Add, {scores, part});
  const auto weights = g.named("softmax").op(OpKind::SoftMax, {masked}, {{"axis", int64_t{-1}}});
  g.named("pv").op(OpKind::MatMul, {weights, v});
  return tiled(g.finish());
}
TEST(TileRegions, GoOnThroughASliceAcrossTheLoops) {
  EXPECT_EQ(tiled_with_a_part_of_a_mask(256, 512), "qk part add softmax pv / 64");
}
TEST(TileRegions, EndAtASliceAlongALoop) { EXPECT_EQ(tiled_with_a_part_of_a_mask(512, 384), "qk | part add softmax | pv"); }

TEST(TileRegions, GoOnThroughATransposeOfTheLoops) {
  GraphBuilder g;
  const auto dst = attention(g, {});
  g.named("turn").op(OpKind::StaticTranspose, {dst}, {{"order", std::vector<int64_t>{0, 2, 1, 3}}});
  EXPECT_EQ(tiled(g.finish()), "qk scale softmax pv turn / 64");
}

// A region is convex: each tile may write values that leave it, but they must not return through an op outside.
TEST(TileRegions, AreConvex) {
  GraphBuilder g;
  const auto x = g.input(f32, {512, 64});
  const auto a = g.named("a").op(OpKind::MatMul, {x, g.input(f32, {64, 128})});
  const auto norm = g.named("mean").op(OpKind::ReduceMean, {a}, {{"axes", std::vector<int64_t>{0}}, {"keep_dims", true}});
  const auto centred = g.named("subtract").op(OpKind::Subtract, {a, norm});
  g.named("b").op(OpKind::MatMul, {centred, g.input(f32, {128, 32})});
  const std::string text = tiled(g.finish());
  EXPECT_THAT(text, HasSubstr("mean"));
  EXPECT_EQ(text.find("a mean"), std::string::npos) << text;
  EXPECT_EQ(text.find("a subtract"), std::string::npos) << text;
}

TEST(TileRegions, TakeAGatedProductThrough) {
  GraphBuilder g;
  const auto x = g.input(f32, {4, 256, 64});
  const auto gate = g.named("gate").op(OpKind::MatMul, {x, g.input(f32, {64, 128})});
  const auto up = g.named("up").op(OpKind::MatMul, {x, g.input(f32, {64, 128})});
  const auto active = g.named("sigmoid").op(OpKind::Sigmoid, {gate});
  const auto gated = g.named("multiply").op(OpKind::Multiply, {active, up});
  g.named("down").op(OpKind::MatMul, {gated, g.input(f32, {128, 64})});
  EXPECT_EQ(tiled(g.finish()), "gate up sigmoid multiply down / 32");
}

// The first op of the group shares only a scalar factor with the last one, which determines no rows.
TEST(TileRegions, LearnNothingFromANumberThatOpsShare) {
  GraphBuilder g;
  const auto factor = g.input(f32, {1});
  const auto scaled = g.named("scale").op(OpKind::Multiply, {g.input(f32, {1024, 128}), factor});
  const auto product = g.named("product").op(OpKind::MatMul, {g.input(f32, {1024, 64}), g.input(f32, {64, 128})});
  const auto again = g.named("again").op(OpKind::Multiply, {product, factor});
  const auto sum = g.named("sum").op(OpKind::Add, {again, scaled});
  g.named("down").op(OpKind::MatMul, {sum, g.input(f32, {128, 64})});
  EXPECT_EQ(tiled(g.finish()), "scale product again sum down / 32");
}

// The producers of the weights have no token rows: they run once, before the region.
TEST(TileRegions, LeaveWeightsOutside) {
  GraphBuilder g;
  const auto weights = g.named("double").op(OpKind::Multiply, {g.input(f32, {64, 128}), g.input(f32, {1})});
  const auto product = g.named("product").op(OpKind::MatMul, {g.input(f32, {1024, 64}), weights});
  g.named("relu").op(OpKind::ReLU, {product});
  EXPECT_EQ(tiled(g.finish()), "double | product relu / 32");
}

// Dropout draws its numbers by position in the whole tensor, so a tile passes its offset. A dropout that already has an offset
// is not tiled.
TEST(TileRegions, CutADropoutThatIsNoPartAlready) {
  for (const bool is_part : {false, true}) {
    GraphBuilder g;
    const auto s64 = DataType::s64;
    const auto product = g.named("product").op(OpKind::MatMul, {g.input(f32, {1024, 64}), g.input(f32, {64, 128})});
    std::vector<uint64_t> inputs{product, g.scalar(s64), g.scalar(s64), g.scalar(f32)};
    Attributes attributes;
    if (is_part) {
      inputs.push_back(g.scalar(s64));
      attributes["steps"] = std::vector<int64_t>{128, 1};
    }
    g.named("dropout").multi(OpKind::Dropout, inputs, attributes, {f32, DataType::u8});
    const Graph graph = g.finish();
    EXPECT_EQ(tiled(graph), is_part ? "product | dropout" : "product dropout / 32");
    EXPECT_THAT(why_not(graph), HasSubstr(is_part ? "is already a part of a larger tensor" : ""));
  }
}

// ---- sums over the rows of tiles

struct Backward {
  Dims batch = {2, 8};
  int64_t queries = 1024, keys = 1024, width = 64;
  bool has_softmax = false, has_bias = false, reads_sum = false;
};

//   q ─┐                   stats ─┐
//      qk ──> scale ──> subtract ──> exp ──┬──> (P') dv, with diff_dst
//   k ─┘         diff_dst, v ──> dp ───────┴──> ds ──┬──> (dS') dk, with q
//                                                    └──> dq, with k
Graph backward(const Backward& b) {
  GraphBuilder g;
  const auto matrix = [&](int64_t rows, int64_t columns) {
    Dims shape = b.batch;
    shape.insert(shape.end(), {rows, columns});
    return g.input(f32, shape);
  };
  const auto q = matrix(b.queries, b.width), k = matrix(b.keys, b.width), v = matrix(b.keys, b.width),
             diff_dst = matrix(b.queries, b.width);
  const auto scores = g.named("qk").op(OpKind::MatMul, {q, k}, {{"transpose_b", true}});
  const auto weights = b.has_softmax ? g.named("softmax").op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}})
                                     : g.named("exp").op(OpKind::Exp, {scores});
  std::vector<uint64_t> of_values{weights, diff_dst};
  if (b.has_bias) of_values.push_back(g.input(f32, {b.width}));
  const auto dv = g.named("dv").op(OpKind::MatMul, of_values, {{"transpose_a", true}});
  const auto dp = g.named("dp").op(OpKind::MatMul, {diff_dst, v}, {{"transpose_b", true}});
  const auto ds = g.named("ds").op(OpKind::Multiply, {weights, dp});
  g.named("dk").op(OpKind::MatMul, {ds, q}, {{"transpose_a", true}});
  g.named("dq").op(OpKind::MatMul, {ds, k});
  if (b.reads_sum) g.named("reader").op(OpKind::Abs, {dv});
  return g.finish();
}

TEST(TileRegions, AddToSumsOverRowsAndColumns) {
  EXPECT_EQ(tiled(backward({})), "qk exp dv dp ds dk dq / 128x512 + dv + dk + dq in 2");
  EXPECT_EQ(tiled(backward({.queries = 4096})), "qk exp dv dp ds dk dq / 128x512 + dv + dk + dq in 4");
}

// The rule applies to rows of any length.
TEST(TileRegions, CutColumnsOfAnyNumber) {
  EXPECT_EQ(tiled(backward({.queries = 512, .keys = 100000})), "qk exp dv dp ds dk dq / 128x512 + dv + dk + dq");
  EXPECT_EQ(tiled(backward({.queries = 512, .keys = 577})), "qk exp dv dp ds dk dq / 128x320 + dv + dk + dq");
}

// With one block of rows, nothing is accumulated.
TEST(TileRegions, AddNothingInOneTile) {
  EXPECT_EQ(tiled(backward({.queries = 128, .keys = 128})), "qk exp dv dp ds dk dq / 128");
  EXPECT_EQ(tiled(backward({.queries = 512, .keys = 512})), "qk exp dv dp ds dk dq / 128 + dv + dk");
}

// A softmax needs whole rows.
TEST(TileRegions, SumOverRowsThatAreWhole) {
  EXPECT_EQ(tiled(backward({.has_softmax = true})), "qk softmax dv dp ds dk dq / 128 + dv + dk in 2");
  const Graph long_rows = backward({.keys = 16384, .width = 128, .has_softmax = true});
  EXPECT_THAT(tiled(long_rows), HasSubstr("qk softmax dp ds dq / 32 | dv | dk"));
  EXPECT_THAT(why_not(long_rows), HasSubstr("a tile adds to 8388608 bytes of a sum, allowed is at most 4194304"));
}

// An entry alone is tiled as it is within a batch.
TEST(TileRegions, CutSumsAlikeInAnyBatch) {
  EXPECT_EQ(tiled(backward({.batch = {1}})), tiled(backward({})));
  EXPECT_EQ(tiled(backward({.batch = {100, 3}})), tiled(backward({})));
}

TEST(TileRegions, LeaveOutSumsThatTheyCannotAddTo) {
  const Graph with_bias = backward({.has_bias = true});
  EXPECT_EQ(tiled(with_bias).find("+ dv"), std::string::npos) << tiled(with_bias);
  EXPECT_THAT(why_not(with_bias), HasSubstr("\"dv\" sums over the rows of a tile, and would add its bias in each tile"));
  const Graph one_matrix = backward({.batch = {}});
  EXPECT_EQ(tiled(one_matrix).find('+'), std::string::npos) << tiled(one_matrix);
  EXPECT_THAT(why_not(one_matrix), HasSubstr("there is no batch to split instead"));
}

// Tokens are mixed by plain weights after channels were: with the sum in the region, one thread would take all tiles of an
// entry, which the products before it need not wait for.
TEST(TileRegions, SumNoProductWithWeightsThatTheBatchShares) {
  GraphBuilder g;
  const auto hidden = g.named("first").op(OpKind::MatMul, {g.input(f32, {1, 4096, 64}), g.input(f32, {64, 256})});
  const auto grown = g.named("exp").op(OpKind::Exp, {hidden});
  const auto channels = g.named("second").op(OpKind::MatMul, {grown, g.input(f32, {256, 64})});
  const auto turned = g.named("turn").op(OpKind::StaticTranspose, {channels}, {{"order", Dims{0, 2, 1}}});
  g.named("tokens").op(OpKind::MatMul, {turned, g.input(f32, {4096, 128})});
  const Graph graph = g.finish();
  EXPECT_EQ(tiled(graph), "first exp second turn / 128 | tokens");
  EXPECT_THAT(why_not(graph), HasSubstr("and the batch shares one of its factors"));
}

TEST(TileRegions, EndBehindASum) {
  const std::string text = tiled(backward({.reads_sum = true}));
  EXPECT_THAT(text, HasSubstr("qk exp dv dp ds dk dq / 128x512 + dv + dk + dq in 2 | reader"));
}

// x x': both operands are rows of the same loop, of which a tile has one block.
TEST(TileRegions, DoNotJoinRowsWithThemselves) {
  GraphBuilder g;
  const auto x = g.named("x").op(OpKind::MatMul, {g.input(f32, {4, 512, 64}), g.input(f32, {64, 64})});
  g.named("square").op(OpKind::MatMul, {x, x}, {{"transpose_b", true}});
  EXPECT_EQ(tiled(g.finish()), "x | square");
}

// ---- partitions

struct AllButWildcards : Capabilities {
  std::string why_unsupported(const Graph&, const Op& op) const override {
    return op.kind == OpKind::Wildcard ? "unknown" : "";
  }
  bool runs_several_groups() const override { return true; }
};

std::vector<size_t> sizes_of_partitions(const Graph& graph) {
  std::vector<size_t> sizes;
  for (const Partition& partition : partition_graph(graph, PartitionPolicy::fusion, AllButWildcards{}))
    sizes.push_back(partition.ops.size());
  return sizes;
}

TEST(JoinedGroups, AreOnePartitionAroundLibraryOps) {
  GraphBuilder g;
  attention(g, {});
  EXPECT_EQ(sizes_of_partitions(g.finish()), (std::vector<size_t>{4}));
}

TEST(JoinedGroups, AreLeftAloneWithoutALibraryOp) {
  GraphBuilder g;
  const auto sum = g.op(OpKind::ReduceSum, {g.input(f32, {4, 8})}, {{"axes", std::vector<int64_t>{0}}});
  g.op(OpKind::SoftMax, {sum}, {{"axis", int64_t{0}}});
  EXPECT_EQ(sizes_of_partitions(g.finish()), (std::vector<size_t>{1, 1}));
}

//   x ──> product ──> wildcard ──> add ──> other
//              └───────────────────┘
TEST(JoinedGroups, EndAtWhatDoesNotRun) {
  GraphBuilder g;
  const auto product = g.op(OpKind::MatMul, {g.input(f32, {4, 4}), g.input(f32, {4, 4})});
  const auto unknown = g.op(OpKind::Wildcard, {product});
  g.tensor(unknown).shape = Dims{4, 4};
  const auto sum = g.op(OpKind::Add, {product, unknown});
  g.op(OpKind::MatMul, {sum, g.input(f32, {4, 4})});
  EXPECT_EQ(sizes_of_partitions(g.finish()), (std::vector<size_t>{1, 1, 2}));
}

// ---- quantised results

Graph quantised_scores(const std::string& type, int64_t axis, size_t scales) {
  GraphBuilder g;
  const auto scores = g.named("qk").op(OpKind::MatMul, {g.input(f32, {32, 64, 128}), g.input(f32, {32, 128, 256})});
  g.named("quantize")
      .op(OpKind::Quantize, {scores},
          {{"qtype", type},
           {"axis", axis},
           {"scales", std::vector<float>(scales, 0.5F)},
           {"zps", std::vector<int64_t>(scales, 0)}},
          DataType::u8);
  return g.finish();
}

// A tile's kernel has the scales of the whole axis and would use the first ones for every tile.
TEST(TileRegions, DoNotCutAnAxisWithAScaleForEachEntry) {
  EXPECT_EQ(tiled(quantised_scores("per_tensor", 0, 1)), "qk quantize / 64");
  EXPECT_EQ(tiled(quantised_scores("per_channel", 2, 256)), "qk quantize / 64");
  EXPECT_EQ(tiled(quantised_scores("per_channel", 0, 32)), "qk | quantize");
  EXPECT_EQ(tiled(quantised_scores("per_channel", 1, 64)), "qk | quantize");
}

// ---- dequantised weights

struct Compressed {
  int64_t heads = 32, queries = 32, keys = 256, width = 64;
  DataType dtype = DataType::s8;
};

Graph compressed_keys(const Compressed& c) {
  GraphBuilder g;
  const Dims keys{1, c.heads, c.width, c.keys}, groups{1, c.heads, c.width / 32, c.keys};
  const auto k = g.named("dequantize")
                     .op(OpKind::DynamicDequantize, {g.input(c.dtype, keys), g.input(f32, groups)},
                         {{"qtype", std::string("per_group")}, {"group_shape", Dims{1, 1, 32, 1}}}, f32);
  const auto scores = g.named("qk").op(OpKind::MatMul, {g.input(f32, {1, c.heads, c.queries, c.width}), k});
  g.named("softmax").op(OpKind::SoftMax, {scores}, {{"axis", int64_t{-1}}});
  return g.finish();
}

TEST(TileRegions, DequantizeWeightsInTheirTile) {
  EXPECT_EQ(tiled(compressed_keys({})), "dequantize qk softmax / 32");
  EXPECT_EQ(tiled(compressed_keys({.dtype = DataType::u4})), "dequantize qk softmax / 32");
  EXPECT_EQ(tiled(compressed_keys({.queries = 1})), "dequantize qk softmax / 1");
}

// Several blocks of rows read the weights: each block dequantises them again if they exceed a cache, otherwise they are
// dequantised once.
TEST(TileRegions, DequantizeAgainOnlyWhatFillsACache) {
  EXPECT_EQ(tiled(compressed_keys({.queries = 512})), "dequantize qk softmax / 128");
  EXPECT_EQ(tiled(compressed_keys({.heads = 4, .queries = 512})), "dequantize | qk softmax / 64");
}

}  // namespace
}  // namespace lamina::testing
