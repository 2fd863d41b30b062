// The pixels that each position reads along one axis, worked out by hand.
#include "backends/cpu/library/windows/axis_taps.h"

#include <gmock/gmock.h>

#include <tuple>

namespace lamina::cpu {
namespace {

using ::testing::ElementsAre;
using Seen = std::tuple<int64_t, float, int32_t>;  // pixel, weight, tap

std::vector<Seen> taps_of(const AxisTaps& taps, int64_t pixel) {
  std::vector<Seen> seen;
  for (const Tap* tap = taps.begin(pixel); tap != taps.end(pixel); ++tap)
    seen.emplace_back(tap->pixel, tap->weight, tap->number);
  return seen;
}

TEST(AxisTaps, WindowsReadTheirTapsInsideTheImage) {
  // image 0 1 2 3 4, windows of three taps with dilation 2, from -2 on in steps of 3: -2 0 2, 1 3 5
  const WindowAxis axis{.image = 5, .positions = 2, .kernel = 3, .stride = 3, .dilation = 2, .pad_begin = 2};
  const AxisTaps taps = window_taps(axis, Divisor::pixels_inside, 10);
  ASSERT_EQ(taps.size(), 2);
  EXPECT_THAT(taps_of(taps, 0), ElementsAre(Seen{0, 1, 10}, Seen{2, 1, 20}));
  EXPECT_THAT(taps_of(taps, 1), ElementsAre(Seen{1, 1, 0}, Seen{3, 1, 10}));
  EXPECT_EQ(taps.divisor(0), 2);
  EXPECT_EQ(window_taps(axis, Divisor::window).divisor(0), 3);
  EXPECT_EQ(window_taps(axis, Divisor::one).divisor(0), 1);
}

TEST(AxisTaps, AWindowOutsideTheImageReadsNothing) {
  const AxisTaps taps = window_taps({.image = 2, .positions = 3, .kernel = 1, .stride = 2, .dilation = 1, .pad_begin = 2},
                                    Divisor::pixels_inside);
  EXPECT_EQ(taps.begin(0), taps.end(0));
  EXPECT_EQ(taps.divisor(0), 0);
  EXPECT_THAT(taps_of(taps, 1), ElementsAre(Seen{0, 1, 0}));
  EXPECT_EQ(taps.begin(2), taps.end(2));
  EXPECT_EQ(taps.inputs_of({2, 3}).size(), 0);
}

TEST(AxisTaps, AGradientReadsTheWindowsThatReadItsPixels) {
  // image 0 1 2, windows of three pixels centred at 0, 1 and 2; the outer windows contain two pixels of the image
  const AxisTaps windows = window_taps({.image = 3, .positions = 3, .kernel = 3, .stride = 1, .dilation = 1, .pad_begin = 1},
                                       Divisor::pixels_inside);
  const AxisTaps taps = windows.reversed(3);
  EXPECT_THAT(taps_of(taps, 0), ElementsAre(Seen{0, 1.5F, 1}, Seen{1, 1, 0}));
  EXPECT_THAT(taps_of(taps, 1), ElementsAre(Seen{0, 1.5F, 2}, Seen{1, 1, 1}, Seen{2, 1.5F, 0}));
  EXPECT_EQ(taps.divisor(0), 3);
}

TEST(AxisTaps, KnowTheInputsOfSomeOutputs) {
  const AxisTaps taps =
      window_taps({.image = 10, .positions = 4, .kernel = 2, .stride = 2, .dilation = 3, .pad_begin = 0}, Divisor::one);
  EXPECT_EQ(taps.inputs_of({1, 3}).begin, 2);
  EXPECT_EQ(taps.inputs_of({1, 3}).end, 8);
}

TEST(AxisTaps, NearestPixelsAreOneEach) {
  const AxisTaps taps = nearest_taps(4, 2, Coordinates::half_pixel);
  EXPECT_THAT(taps_of(taps, 0), ElementsAre(Seen{1, 1, 0}));
  EXPECT_THAT(taps_of(taps, 1), ElementsAre(Seen{3, 1, 0}));
}

TEST(AxisTaps, LinearPixelsHaveNoReadWithoutWeight) {
  const AxisTaps taps = linear_taps(2, 3, Coordinates::align_corners);
  EXPECT_THAT(taps_of(taps, 0), ElementsAre(Seen{0, 1, 0}));
  EXPECT_THAT(taps_of(taps, 1), ElementsAre(Seen{0, 0.5F, 0}, Seen{1, 0.5F, 0}));
  EXPECT_THAT(taps_of(taps, 2), ElementsAre(Seen{1, 1, 0}));
}

}  // namespace
}  // namespace lamina::cpu
