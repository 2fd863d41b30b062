// Blocks with overlapping live ranges never share a byte; other blocks may.
#include "kernels/arena.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "interface/status.h"

namespace lamina::kernel {
namespace {

using ::testing::ElementsAre;

TEST(Arena, ABlockTakesTheBytesOfOneThatIsNotReadAnyMore) {
  // step 0 writes a, step 1 reads a and writes b, step 2 reads b and writes c, step 3 reads c
  const std::vector<ArenaBlock> chain = {{256, 0, 1}, {256, 1, 2}, {256, 2, 3}};
  const ArenaLayout layout = lay_out(chain, 64);
  EXPECT_THAT(layout.offsets, ElementsAre(0, 256, 0));
  EXPECT_EQ(layout.bytes, 512u);
}

TEST(Arena, WhatIsReadLateKeepsItsBytes) {
  const std::vector<ArenaBlock> blocks = {{256, 0, 3}, {256, 1, 2}, {256, 2, 3}};
  EXPECT_EQ(lay_out(blocks, 64).bytes, 768u);
}

TEST(Arena, TheLargestBlockLiesLowestAndSmallOnesFillGaps) {
  const std::vector<ArenaBlock> blocks = {{64, 0, 0}, {1024, 0, 1}, {128, 1, 1}};
  const ArenaLayout layout = lay_out(blocks, 64);
  EXPECT_EQ(layout.offsets[1], 0u);
  EXPECT_EQ(layout.offsets[0], 1024u);
  EXPECT_EQ(layout.offsets[2], 1024u);
  EXPECT_EQ(layout.bytes, 1152u);
}

TEST(Arena, OffsetsAreAlignedAndEmptyBlocksTakeNothing) {
  const std::vector<ArenaBlock> blocks = {{1, 0, 1}, {3, 0, 1}, {0, 0, 1}};
  const ArenaLayout layout = lay_out(blocks, 64);
  for (const size_t offset : layout.offsets) EXPECT_EQ(offset % 64, 0u);
  EXPECT_EQ(layout.bytes, 128u);
  EXPECT_EQ(lay_out({}, 64).bytes, 0u);
}

TEST(Arena, SizesThatDoNotAddUpAreRefused) {
  const int64_t huge = INT64_MAX - 127;
  const std::vector<ArenaBlock> two = {{huge, 0, 1}, {huge, 1, 2}}, one = {{INT64_MAX, 0, 0}};
  for (const auto& blocks : {two, one}) {
    try {
      lay_out(blocks, 64);
      ADD_FAILURE() << "an arena of more than 2^63 bytes was laid out";
    } catch (const Error& error) {
      EXPECT_EQ(error.status(), Status::out_of_memory);
      EXPECT_THAT(error.what(), ::testing::HasSubstr("more than 2^63 bytes"));
    }
  }
}

TEST(Arena, RandomLivesThatMeetShareNoByte) {
  std::mt19937 random(7);
  const auto draw = [&](int most) { return std::uniform_int_distribution<int>(0, most)(random); };
  for (int round = 0; round < 200; ++round) {
    std::vector<ArenaBlock> blocks;
    for (int i = draw(20); i >= 0; --i) {
      const auto first = static_cast<size_t>(draw(10));
      blocks.push_back({draw(1000), first, first + static_cast<size_t>(draw(4))});
    }
    const ArenaLayout layout = lay_out(blocks, 64);
    int64_t in_all = 0;
    for (size_t a = 0; a < blocks.size(); ++a) {
      in_all += (blocks[a].bytes + 63) / 64 * 64;
      const auto begin = static_cast<int64_t>(layout.offsets[a]);
      EXPECT_LE(begin + blocks[a].bytes, static_cast<int64_t>(layout.bytes));
      for (size_t b = 0; b < a; ++b) {
        if (blocks[a].first_step > blocks[b].last_step || blocks[b].first_step > blocks[a].last_step) continue;
        const auto other = static_cast<int64_t>(layout.offsets[b]);
        EXPECT_TRUE(begin + blocks[a].bytes <= other || other + blocks[b].bytes <= begin) << a << " and " << b;
      }
    }
    EXPECT_LE(static_cast<int64_t>(layout.bytes), in_all);
  }
}

}  // namespace
}  // namespace lamina::kernel
