// When OpenMP regions indicate oversubscription, and how long the detector reports it.
#include "backends/cpu/threads/oversubscription_detector.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lamina::cpu {
namespace {

using Clock = OversubscriptionDetector::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::hours(1)};

// Simulates a region whose caller spends `own` on its units and then waits for threads, the slowest of which spends `longest`.
// Other programs use the caller's core for `preempted` before its units end.
bool is_seen_after(microseconds own, microseconds waits, microseconds longest, microseconds preempted = {}) {
  OversubscriptionDetector detector;
  RegionTimer timer(detector, kStart, {});
  const auto own_end = kStart + own + preempted;
  timer.own_units_ended(own_end, own);
  timer.all_units_ended(std::max(own, longest), own_end + waits, own + waits);
  return detector.is_recent(own_end + waits);
}

TEST(OversubscriptionDetector, IsThereWhereOthersEndMuchLaterThanTheCaller) {
  EXPECT_TRUE(is_seen_after(microseconds(100), milliseconds(4), microseconds(100)));
  EXPECT_FALSE(is_seen_after(microseconds(100), microseconds(400), microseconds(100)));  // waking a sleeping thread costs time
  EXPECT_FALSE(is_seen_after(microseconds(100), microseconds(0), microseconds(100)));
}

// The caller loses its core before it gets a unit, or during its own unit.
TEST(OversubscriptionDetector, IsThereWhereTheCallerIsLate) {
  EXPECT_TRUE(is_seen_after(microseconds(0), microseconds(0), milliseconds(1), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(milliseconds(1), microseconds(0), microseconds(0), milliseconds(4)));
  EXPECT_FALSE(is_seen_after(milliseconds(5), microseconds(0), microseconds(0), microseconds(100)));
}

// One other thread took all units and lost its core meanwhile.
TEST(OversubscriptionDetector, IsThereWhereACallerWithoutUnitsWaits) {
  EXPECT_TRUE(is_seen_after(microseconds(0), milliseconds(40), milliseconds(1)));
  EXPECT_FALSE(is_seen_after(microseconds(0), milliseconds(40), milliseconds(40)));
}

TEST(OversubscriptionDetector, IsNotThereWhereUnitsAreLong) {
  EXPECT_FALSE(is_seen_after(milliseconds(2), milliseconds(4), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(milliseconds(2), milliseconds(12), milliseconds(4)));
}

TEST(OversubscriptionDetector, IsSeenInEachStageAlone) {
  OversubscriptionDetector detector;
  RegionTimer timer(detector, kStart, {});
  Clock::time_point now = kStart;
  for (int stage = 0; stage < 100; ++stage) {  // the sum of the waits would exceed the limit
    timer.own_units_ended(now += microseconds(50), now - kStart);
    timer.all_units_ended(microseconds(50), now += microseconds(100), now - kStart);
  }
  EXPECT_FALSE(detector.is_recent(now));
  timer.own_units_ended(now += microseconds(50), now - kStart);
  timer.all_units_ended(microseconds(50), now += milliseconds(4), now - kStart);
  EXPECT_TRUE(detector.is_recent(now));
}

// CPU times cost as much as a small region.
TEST(OversubscriptionDetector, TakesCpuTimesForAWhileAfterALongRegion) {
  OversubscriptionDetector detector;
  EXPECT_FALSE(detector.needs_cpu_times(kStart));
  detector.region_ended(kStart, kStart + microseconds(400));
  EXPECT_FALSE(detector.needs_cpu_times(kStart + microseconds(400)));
  detector.region_ended(kStart, kStart + milliseconds(4));
  EXPECT_TRUE(detector.needs_cpu_times(kStart + milliseconds(4)));
  EXPECT_TRUE(detector.needs_cpu_times(kStart + milliseconds(50)));
  EXPECT_FALSE(detector.needs_cpu_times(kStart + milliseconds(60)));
}

TEST(OversubscriptionDetector, IsBelievedForHalfASecond) {
  OversubscriptionDetector detector;
  EXPECT_FALSE(detector.is_recent(kStart));
  detector.record(kStart);
  EXPECT_TRUE(detector.is_recent(kStart));
  EXPECT_TRUE(detector.is_recent(kStart + milliseconds(499)));
  EXPECT_FALSE(detector.is_recent(kStart + milliseconds(501)));
}

}  // namespace
}  // namespace lamina::cpu
