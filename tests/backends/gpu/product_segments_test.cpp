// Where sums are divided among work-groups, and into how many segments.
#include "backends/gpu/schedule/product_segments.h"

#include <gtest/gtest.h>

#include "backends/gpu/schedule/tuning.h"

namespace lamina::gpu {
namespace {

// 56 x 56 positions of 32 samples, 3 x 3 taps of 64 channels.
TEST(ProductSegments, GiveWorkToMultiprocessorsWhereTilesAreFew) {
  const int64_t terms = int64_t{32} * 56 * 56, segment = segment_of_gradient(576, 64, 1, terms);
  EXPECT_EQ(segments_of(terms, segment), 56);  // of 9 tiles each
  EXPECT_EQ(segment_of_gradient(8192, 4096, 1, terms), 0);
  EXPECT_EQ(segment_of_gradient(64, 64, 512, terms), 0);
}

TEST(ProductSegments, AreNotShorterThanTheCostOfPartialSumsAllows) {
  EXPECT_EQ(segment_of_gradient(64, 64, 1, 2047), 0);
  EXPECT_EQ(segment_of_gradient(64, 64, 1, 2048), 1024);
  EXPECT_EQ(segment_of_matrix(64, 16383), 0);
  EXPECT_EQ(segment_of_matrix(64, 16384), 8192);
  EXPECT_EQ(segment_of_matrix(4096, 1 << 20), 0);
}

TEST(ProductSegments, BeginWhereStepsOfAllTilesBegin) {
  for (const tuning::TimedTile& tile : tuning::kMatrixTiles) EXPECT_EQ(tuning::kSegmentUnit % tile.depth, 0);
  for (const int64_t terms : {2048, 2049, 5000, 100352, 1000003}) {
    const int64_t segment = segment_of_gradient(100, 100, 3, terms);
    EXPECT_EQ(segment % tuning::kSegmentUnit, 0);
    EXPECT_LT((segments_of(terms, segment) - 1) * segment, terms);
  }
}

TEST(ProductSegments, AreOneForEmptySums) {
  EXPECT_EQ(segment_of_gradient(64, 64, 1, 0), 0);
  EXPECT_EQ(segment_of_gradient(0, 64, 1, 4096), 1024);
  EXPECT_EQ(segments_of(0, 0), 1);
}

}  // namespace
}  // namespace lamina::gpu
