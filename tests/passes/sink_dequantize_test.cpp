// A Dequantize in front of a MaxPool: the pool reads the integers, and in each twin the numbers.
#include "passes/sink_dequantize.h"

#include "passes/verify_graph.h"
#include "passes_test_support.h"

namespace lamina::testing {
namespace {

struct Pooled {
  Attributes scaling = {
      {"scales", std::vector<float>{0.1F}}, {"zps", std::vector<int64_t>{3}}, {"qtype", std::string("per_tensor")}};
  OpKind kind = OpKind::MaxPool;
  int64_t pad = 0;
  bool keeps_numbers = false;  // they are also a graph output
  int pools = 1;
};

std::string kinds_after(const Pooled& p) {
  GraphBuilder g;
  const auto numbers = g.op(OpKind::Dequantize, {g.input(u8, {1, 6, 6, 8})}, p.scaling, f32);
  Attributes window{{"kernel", Dims{2, 2}}, {"strides", Dims{2, 2}}, {"pads_begin", Dims{p.pad, 0}}, {"pads_end", Dims{0, 0}}};
  if (p.kind == OpKind::AvgPool) window["exclude_pad"] = true;
  for (int i = 0; i < p.pools; ++i) g.op(p.kind, {numbers}, window);
  if (p.keeps_numbers) g.output(numbers);
  const Graph graph = g.finish();
  const auto moved = sink_dequantize(graph);
  if (!moved) return "as it was";
  verify_graph(*moved, "sink_dequantize");
  std::string kinds;
  for (const Op& op : moved->ops()) {
    check_op(OpView(*moved, op));
    kinds += (kinds.empty() ? "" : " ") + std::string(name_of(op.kind));
  }
  return kinds;
}

TEST(SinkDequantize, BehindAMaxPool) {
  EXPECT_EQ(kinds_after({}), "MaxPool Dequantize");
  EXPECT_EQ(kinds_after({.pad = 1}), "MaxPool Dequantize");
  EXPECT_EQ(kinds_after({.keeps_numbers = true}), "Dequantize MaxPool Dequantize End");
}

TEST(SinkDequantize, IsGoneWhenItsLastReaderIsAPool) {
  EXPECT_EQ(kinds_after({.pools = 2}), "MaxPool Dequantize MaxPool Dequantize");
}

TEST(SinkDequantize, NotBehindAMean) { EXPECT_EQ(kinds_after({.kind = OpKind::AvgPool}), "as it was"); }

TEST(SinkDequantize, NotIfAWindowHasNoPixel) { EXPECT_EQ(kinds_after({.pad = 2}), "as it was"); }

TEST(SinkDequantize, NotIfTheOrderMayChange) {
  const auto with = [](std::vector<float> scales, std::string type) {
    return kinds_after(
        {.scaling = {
             {"scales", scales}, {"zps", std::vector<int64_t>(scales.size(), 0)}, {"qtype", type}, {"axis", int64_t{3}}}});
  };
  EXPECT_EQ(with({-0.1F}, "per_tensor"), "as it was");
  EXPECT_EQ(with({1, 2, 3, 4, 5, 6, 7, -8}, "per_channel"), "as it was");
}

}  // namespace
}  // namespace lamina::testing
