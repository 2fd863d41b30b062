// The positions that windows read along one axis, worked out by hand.
#include "interface/windows.h"

#include <gmock/gmock.h>

#include <tuple>

#include "support/graph_builder.h"

namespace lamina::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Seen = std::tuple<int64_t, float>;  // position, weight

std::vector<Seen> taps_of(const AxisTaps& axis, int64_t output) {
  std::vector<Seen> seen;
  for (int64_t k = 0; k < axis.count; ++k) {
    if (const int64_t pixel = axis.pixel(output, k); pixel >= 0) seen.emplace_back(pixel, axis.weight(output, k));
  }
  return seen;
}

Attributes line(int64_t kernel, int64_t stride, int64_t begin, int64_t end) {
  return {{"kernel", Dims{kernel}}, {"strides", Dims{stride}}, {"pads_begin", Dims{begin}}, {"pads_end", Dims{end}}};
}

AxisTaps axis_of(OpKind kind, const std::vector<Dims>& inputs, const Attributes& attributes) {
  GraphBuilder g;
  std::vector<uint64_t> ids;
  for (const Dims& shape : inputs) ids.push_back(g.input(DataType::f32, shape));
  g.op(kind, ids, attributes);
  const Graph graph = g.finish();
  return windows_of(OpView(graph, graph.op(0))).axes.at(0);
}

TEST(Windows, ReadTheirTapsInsideTheImage) {
  // image 0 1 2 3 4, windows of three taps with dilation 2, from -2 on in steps of 3: -2 0 2, 1 3 5
  Attributes attributes = line(3, 3, 2, 1);
  attributes["dilations"] = Dims{2};
  const AxisTaps axis = axis_of(OpKind::MaxPool, {{1, 5, 1}}, attributes);
  ASSERT_EQ(axis.outputs, 2);
  EXPECT_THAT(taps_of(axis, 0), ElementsAre(Seen{0, 1}, Seen{2, 1}));
  EXPECT_THAT(taps_of(axis, 1), ElementsAre(Seen{1, 1}, Seen{3, 1}));
  EXPECT_TRUE(axis.may_be_before(0) && !axis.may_be_before(1) && !axis.may_be_after(1) && axis.may_be_after(2));
}

TEST(Windows, CountThePositionsInside) {
  Attributes attributes = line(3, 1, 1, 1);
  attributes["exclude_pad"] = true;
  EXPECT_THAT(axis_of(OpKind::AvgPool, {{1, 3, 1}}, attributes).inside, ElementsAre(2, 3, 2));
  attributes["exclude_pad"] = false;
  EXPECT_THAT(axis_of(OpKind::AvgPool, {{1, 3, 1}}, attributes).inside, IsEmpty());
}

TEST(Windows, OfAGradientAreThoseThatReadItsPosition) {
  // image 0 1 2, windows of three positions centred at 0, 1 and 2; the outer windows contain two positions of the image
  Attributes attributes = line(3, 1, 1, 1);
  attributes["src_shape"] = Dims{1, 3, 1};
  attributes["exclude_pad"] = true;
  const AxisTaps weighted = axis_of(OpKind::AvgPoolBackward, {{1, 3, 1}}, attributes);
  EXPECT_THAT(taps_of(weighted, 0), ElementsAre(Seen{0, 1.5F}, Seen{1, 1}));
  EXPECT_THAT(taps_of(weighted, 1), ElementsAre(Seen{0, 1.5F}, Seen{1, 1}, Seen{2, 1.5F}));
  EXPECT_EQ(weighted.divisor, 3);
  attributes["exclude_pad"] = false;
  const AxisTaps regular = axis_of(OpKind::AvgPoolBackward, {{1, 3, 1}}, attributes);
  EXPECT_THAT(regular.pixels, IsEmpty());
  EXPECT_THAT(taps_of(regular, 0), ElementsAre(Seen{0, 1}, Seen{1, 1}));
}

TEST(Windows, OfAGradientAreDividedByTheLargestNumberOfPositionsInside) {
  // image 0 1, windows of three positions centred at 0 and 1: each contains both positions of the image
  Attributes attributes = line(3, 1, 1, 1);
  attributes["src_shape"] = Dims{1, 2, 1};
  attributes["exclude_pad"] = true;
  const AxisTaps axis = axis_of(OpKind::AvgPoolBackward, {{1, 2, 1}}, attributes);
  EXPECT_THAT(axis.weights, IsEmpty());
  EXPECT_EQ(axis.divisor, 2);
}

TEST(Windows, OfAGradientKnowThePlaceInEachWindow) {
  // image 0 1 2 3, windows 0 1 2 and 2 3: position 2 is the last of the first and the first of the second
  const AxisTaps axis = axis_of(OpKind::MaxPoolBackward, {{1, 4, 1}, {1, 2, 1}}, line(3, 2, 0, 1));
  EXPECT_THAT(taps_of(axis, 2), ElementsAre(Seen{0, 1}, Seen{1, 1}));
  EXPECT_EQ(axis.number(2, 0), 2);
  EXPECT_EQ(axis.number(2, 1), 0);
}

TEST(Windows, OfARegularGradientCountDown) {
  // image 0 1 2, windows 0 1 and 1 2: position 1 is the last of the first and the first of the second
  const AxisTaps axis = axis_of(OpKind::MaxPoolBackward, {{1, 3, 1}, {1, 2, 1}}, line(2, 1, 0, 0));
  EXPECT_THAT(axis.pixels, IsEmpty());
  EXPECT_THAT(taps_of(axis, 1), ElementsAre(Seen{0, 1}, Seen{1, 1}));
  EXPECT_EQ(axis.number(1, 0), 1);
  EXPECT_EQ(axis.number(1, 1), 0);
}

TEST(Windows, ResampleWithoutATableIfStepsAreEqual) {
  const AxisTaps halved = axis_of(OpKind::Interpolate, {{1, 4, 1}}, {{"mode", std::string("nearest")}, {"sizes", Dims{2}}});
  EXPECT_THAT(halved.pixels, IsEmpty());
  EXPECT_THAT(taps_of(halved, 0), ElementsAre(Seen{1, 1}));
  EXPECT_THAT(taps_of(halved, 1), ElementsAre(Seen{3, 1}));
}

TEST(Windows, DoNotReadWhatHasNoWeight) {
  const AxisTaps axis = axis_of(
      OpKind::Interpolate, {{1, 2, 1}},
      {{"mode", std::string("linear")}, {"sizes", Dims{3}}, {"coordinate_transformation_mode", std::string("align_corners")}});
  EXPECT_THAT(taps_of(axis, 0), ElementsAre(Seen{0, 1}));
  EXPECT_THAT(taps_of(axis, 1), ElementsAre(Seen{0, 0.5F}, Seen{1, 0.5F}));
  EXPECT_THAT(taps_of(axis, 2), ElementsAre(Seen{1, 1}));
}

}  // namespace
}  // namespace lamina::testing
