// Units in ranges: each is taken once; a thread takes from the start of its own range, then from the end of other ranges.
#include "backends/cpu/threads/ranges.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace lamina::cpu {
namespace {

std::vector<int64_t> all_that_slot_takes(Ranges& ranges, int64_t stage, int slot) {
  std::vector<int64_t> units;
  for (Ranges::Taken taken = ranges.take(stage, slot); taken.count() > 0; taken = ranges.take(stage, slot)) {
    for (int64_t unit = taken.begin; unit < taken.end; ++unit) units.push_back(unit);
  }
  return units;
}

TEST(Ranges, AThreadTakesItsOwnUnitsInOrderAndThenTheLastOnesOfOthers) {
  Ranges ranges;
  ranges.assign(0, 8, 2);
  EXPECT_EQ(ranges.take(0, 0).begin, 0);
  EXPECT_EQ(all_that_slot_takes(ranges, 0, 1), (std::vector<int64_t>{4, 5, 6, 7, 3, 2, 1}));
}

TEST(Ranges, OneRangeIsTakenInTurn) {
  Ranges ranges;
  ranges.assign(0, 5, 1);
  EXPECT_EQ(ranges.take(0, 3).begin, 0);
  EXPECT_EQ(ranges.take(0, 1).begin, 1);
  EXPECT_EQ(all_that_slot_takes(ranges, 0, 2), (std::vector<int64_t>{2, 3, 4}));
}

TEST(Ranges, ThereIsNothingForAnotherStage) {
  Ranges ranges;
  ranges.assign(7, 3, 2);
  EXPECT_TRUE(ranges.has_any(7));
  EXPECT_FALSE(ranges.has_any(8));
  EXPECT_EQ(ranges.take(6, 0).count(), 0);
  EXPECT_EQ(all_that_slot_takes(ranges, 7, 0).size(), 3u);
  EXPECT_FALSE(ranges.has_any(7));
}

TEST(Ranges, NoUnitsFewerThanRangesAndMoreSlotsThanRangesAreFine) {
  Ranges ranges;
  ranges.assign(0, 0, 4);
  EXPECT_EQ(ranges.take(0, 2).count(), 0);
  ranges.assign(1, 3, Ranges::kMost);
  EXPECT_EQ(all_that_slot_takes(ranges, 1, 1000).size(), 3u);
}

// More units than a range has numbers: threads take several at a time until all are taken.
TEST(Ranges, VeryManyUnitsAreTakenInBundles) {
  Ranges ranges;
  const int64_t units = 3 * Ranges::kLongest * 1000 + 1;
  ranges.assign(0, units, 3);
  int64_t sum = 0, largest = 0;
  for (Ranges::Taken taken = ranges.take(0, 1); taken.count() > 0; taken = ranges.take(0, 1)) {
    sum += taken.count();
    largest = std::max(largest, taken.end);
  }
  EXPECT_EQ(sum, units);
  EXPECT_EQ(largest, units);
}

TEST(Ranges, ThreadsThatTakeAtOnceTakeEachUnitOnce) {
  constexpr int kThreads = 4, kStages = 200;
  constexpr int64_t kUnits = 1000;
  Ranges ranges;
  for (int64_t stage = 0; stage < kStages; ++stage) {
    ranges.assign(stage, kUnits, 1 + static_cast<int>(stage % kThreads));
    std::vector<std::vector<int64_t>> taken(kThreads);
    std::vector<std::thread> threads;
    for (int slot = 0; slot < kThreads; ++slot)
      threads.emplace_back([&, slot] { taken[static_cast<size_t>(slot)] = all_that_slot_takes(ranges, stage, slot); });
    for (std::thread& thread : threads) thread.join();
    std::vector<int> times(kUnits, 0);
    for (const auto& units : taken) {
      for (const int64_t unit : units) ++times[static_cast<size_t>(unit)];
    }
    EXPECT_EQ(times, std::vector<int>(kUnits, 1)) << "stage " << stage;
  }
}

}  // namespace
}  // namespace lamina::cpu
