// What cells read along one axis, by hand.
#include "backends/cpu/library/cells/axis_reads.h"

#include <gmock/gmock.h>

#include <tuple>

namespace lamina::cpu {
namespace {

using ::testing::ElementsAre;
using Seen = std::tuple<int64_t, float, int32_t>;  // cell, weight, tap

std::vector<Seen> reads_of(const AxisReads& reads, int64_t cell) {
  std::vector<Seen> seen;
  for (const Read* read = reads.begin(cell); read != reads.end(cell); ++read)
    seen.emplace_back(read->cell, read->weight, read->tap);
  return seen;
}

TEST(AxisReads, WindowsReadTheirTapsInsideTheImage) {
  // image 0 1 2 3 4, windows of three taps two cells apart, from -2 on in steps of 3: -2 0 2, 1 3 5
  const WindowAxis axis{.image = 5, .positions = 2, .kernel = 3, .stride = 3, .dilation = 2, .pad_begin = 2};
  const AxisReads reads = window_reads(axis, Divisor::cells_inside, 10);
  ASSERT_EQ(reads.size(), 2);
  EXPECT_THAT(reads_of(reads, 0), ElementsAre(Seen{0, 1, 10}, Seen{2, 1, 20}));
  EXPECT_THAT(reads_of(reads, 1), ElementsAre(Seen{1, 1, 0}, Seen{3, 1, 10}));
  EXPECT_EQ(reads.divisor(0), 2);
  EXPECT_EQ(window_reads(axis, Divisor::window).divisor(0), 3);
  EXPECT_EQ(window_reads(axis, Divisor::one).divisor(0), 1);
}

TEST(AxisReads, AWindowOutsideTheImageReadsNothing) {
  const AxisReads reads = window_reads({.image = 2, .positions = 3, .kernel = 1, .stride = 2, .dilation = 1, .pad_begin = 2},
                                       Divisor::cells_inside);
  EXPECT_EQ(reads.begin(0), reads.end(0));
  EXPECT_EQ(reads.divisor(0), 0);
  EXPECT_THAT(reads_of(reads, 1), ElementsAre(Seen{0, 1, 0}));
  EXPECT_EQ(reads.begin(2), reads.end(2));
  EXPECT_EQ(reads.inputs_of({2, 3}).size(), 0);
}

TEST(AxisReads, AGradientReadsTheWindowsThatReadItsCell) {
  // image 0 1 2, windows of three cells around 0, 1 and 2; the outer ones have two cells inside
  const AxisReads windows = window_reads({.image = 3, .positions = 3, .kernel = 3, .stride = 1, .dilation = 1, .pad_begin = 1},
                                         Divisor::cells_inside);
  const AxisReads reads = windows.reversed(3);
  EXPECT_THAT(reads_of(reads, 0), ElementsAre(Seen{0, 1.5F, 1}, Seen{1, 1, 0}));
  EXPECT_THAT(reads_of(reads, 1), ElementsAre(Seen{0, 1.5F, 2}, Seen{1, 1, 1}, Seen{2, 1.5F, 0}));
  EXPECT_EQ(reads.divisor(0), 3);
}

TEST(AxisReads, KnowTheInputsOfSomeOutputs) {
  const AxisReads reads =
      window_reads({.image = 10, .positions = 4, .kernel = 2, .stride = 2, .dilation = 3, .pad_begin = 0}, Divisor::one);
  EXPECT_EQ(reads.inputs_of({1, 3}).begin, 2);
  EXPECT_EQ(reads.inputs_of({1, 3}).end, 8);
}

TEST(AxisReads, NearestCellsAreOneEach) {
  const AxisReads reads = nearest_reads(4, 2, Coordinates::half_pixel);
  EXPECT_THAT(reads_of(reads, 0), ElementsAre(Seen{1, 1, 0}));
  EXPECT_THAT(reads_of(reads, 1), ElementsAre(Seen{3, 1, 0}));
}

TEST(AxisReads, LinearCellsHaveNoReadWithoutWeight) {
  const AxisReads reads = linear_reads(2, 3, Coordinates::align_corners);
  EXPECT_THAT(reads_of(reads, 0), ElementsAre(Seen{0, 1, 0}));
  EXPECT_THAT(reads_of(reads, 1), ElementsAre(Seen{0, 0.5F, 0}, Seen{1, 0.5F, 0}));
  EXPECT_THAT(reads_of(reads, 2), ElementsAre(Seen{1, 1, 0}));
}

}  // namespace
}  // namespace lamina::cpu
