// Concat in front of a Quantize: it joins integers, directly those of a Dequantize if the round trip restores each one.
#include "passes/sink_quantize.h"

#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

struct Scaling {
  std::vector<float> scales = {0.1F};
  std::vector<int64_t> zero_points = {};
  std::string qtype = "per_tensor";

  Attributes attributes() const {
    Attributes all{{"scales", scales}, {"qtype", qtype}, {"axis", int64_t{1}}};
    if (!zero_points.empty()) all["zps"] = zero_points;
    return all;
  }
};

struct Joined {
  Scaling first = {}, second = {}, result = {};
  DataType dtype = s8;
  int64_t axis = 1;
  bool keeps_first = false, keeps_result = false;  // an intermediate value is also a graph output
};

Graph joined(const Joined& j) {
  GraphBuilder g;
  const auto x = g.input(j.dtype, {2, 3, 4}), y = g.input(j.dtype, {2, 3, 4});
  const auto a = g.op(OpKind::Dequantize, {x}, j.first.attributes(), f32);
  const auto b = g.op(OpKind::Dequantize, {y}, j.second.attributes(), f32);
  const auto both = g.op(OpKind::Concat, {a, b}, {{"axis", j.axis}});
  if (j.keeps_first) g.output(a);
  if (j.keeps_result) g.output(both);
  g.op(OpKind::Quantize, {both}, j.result.attributes(), j.dtype);
  return g.finish();
}

std::string kinds_after(const Joined& j) {
  const Graph graph = joined(j);
  const auto moved = sink_quantize(graph);
  if (!moved) return "as it was";
  verify_graph(*moved, "sink_quantize");
  std::string kinds;
  for (const Op& op : moved->ops()) {
    check_op(OpView(*moved, op));
    kinds += (kinds.empty() ? "" : " ") + std::string(name_of(op.kind));
  }
  return kinds;
}

TEST(SinkQuantize, ConcatTakesThemAsTheyAre) {
  EXPECT_EQ(kinds_after({}), "Concat");
  EXPECT_EQ(kinds_after({.dtype = u8}), "Concat");
  const Scaling shifted{.scales = {3.7F}, .zero_points = {-100}};
  EXPECT_EQ(kinds_after({shifted, shifted, shifted}), "Concat");
  const Graph graph = joined({});
  const Graph moved = *sink_quantize(graph);
  EXPECT_EQ(moved.inputs().size(), 2U);
  EXPECT_EQ(moved.tensor(moved.outputs().at(0)).dtype, s8);
  EXPECT_EQ(moved.ops()[0].origins.size(), 3U);
}

TEST(SinkQuantize, ChannelsKeepTheirScales) {
  const Scaling channels{.scales = {0.5F, 0.25F, 2}, .qtype = "per_channel"};
  EXPECT_EQ(kinds_after({.first = channels, .second = channels, .result = channels, .axis = 2}), "Concat");
  const Scaling others{.scales = {1, 3, 5}, .zero_points = {0, 1, 2}, .qtype = "per_channel"};
  const Scaling both{.scales = {0.5F, 0.25F, 2, 1, 3, 5}, .zero_points = {0, 0, 0, 0, 1, 2}, .qtype = "per_channel"};
  EXPECT_EQ(kinds_after({channels, others, both}), "Concat");
  EXPECT_EQ(kinds_after({others, channels, both}), "Dequantize Dequantize Quantize Quantize Concat");
  const Graph graph = *sink_quantize(joined({others, others, both}));
  EXPECT_EQ(graph.ops()[1].attribute<std::vector<float>>("scales"), (std::vector<float>{0.5F, 0.25F, 2}));
}

TEST(SinkQuantize, PartsAreQuantizedWhereScalesOrZeroPointsDiffer) {
  EXPECT_EQ(kinds_after({.second = {.scales = {0.2F}}}), "Dequantize Quantize Concat");
  EXPECT_EQ(kinds_after({.result = {.scales = {0.2F}}}), "Dequantize Dequantize Quantize Quantize Concat");
  EXPECT_EQ(kinds_after({.first = {.zero_points = {1}}}), "Dequantize Quantize Concat");
}

// Products and quotients that may be subnormal, infinite or NaN need not restore the integers.
TEST(SinkQuantize, IntegersDoNotComeBackWithScalesOutsideTheRange) {
  for (const float scale : {1e-45F, -1e-35F, 1e38F}) {
    const Scaling lossy{.scales = {scale}};
    EXPECT_EQ(kinds_after({lossy, lossy, lossy}), "Dequantize Dequantize Quantize Quantize Concat") << scale;
  }
}

TEST(SinkQuantize, WhatSomebodyElseReadsStays) {
  EXPECT_EQ(kinds_after({.keeps_first = true}), "Dequantize Concat End");
  EXPECT_EQ(kinds_after({.keeps_result = true}), "as it was");
}

}  // namespace
}  // namespace lamina::testing
