// When regions of OpenMP say that others want the cores, and for how long that is believed.
#include "backends/cpu/threads/company.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace lamina::cpu {
namespace {

using Clock = Company::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::hours(1)};

// A region whose caller spends `own` on its units and then waits for others, of which one spends `longest` on its units. Other
// programs have the caller's core for `taken_off` before its units end.
bool is_seen_after(microseconds own, microseconds waits, microseconds longest, microseconds taken_off = {}) {
  Company company;
  RegionWatch watch(company, kStart, {});
  const auto own_end = kStart + own + taken_off;
  watch.own_have_ended(own_end, own);
  watch.all_have_ended(std::max(own, longest), own_end + waits, own + waits);
  return company.is_near(own_end + waits);
}

TEST(Company, IsThereWhereOthersEndMuchLaterThanTheCaller) {
  EXPECT_TRUE(is_seen_after(microseconds(100), milliseconds(4), microseconds(100)));
  EXPECT_FALSE(is_seen_after(microseconds(100), microseconds(400), microseconds(100)));  // a thread that slept is woken
  EXPECT_FALSE(is_seen_after(microseconds(100), microseconds(0), microseconds(100)));
}

// The caller waits for its core while others take all units, or amid its own.
TEST(Company, IsThereWhereTheCallerIsLate) {
  EXPECT_TRUE(is_seen_after(microseconds(0), microseconds(0), milliseconds(1), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(milliseconds(1), microseconds(0), microseconds(0), milliseconds(4)));
  EXPECT_FALSE(is_seen_after(milliseconds(5), microseconds(0), microseconds(0), microseconds(100)));
}

// One of them took all, and lost its core amid that.
TEST(Company, IsThereWhereACallerWithoutUnitsWaits) {
  EXPECT_TRUE(is_seen_after(microseconds(0), milliseconds(40), milliseconds(1)));
  EXPECT_FALSE(is_seen_after(microseconds(0), milliseconds(40), milliseconds(40)));
}

TEST(Company, IsNotThereWhereUnitsAreLong) {
  EXPECT_FALSE(is_seen_after(milliseconds(2), milliseconds(4), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(milliseconds(2), milliseconds(12), milliseconds(4)));
}

TEST(Company, IsSeenInEachStageAlone) {
  Company company;
  RegionWatch watch(company, kStart, {});
  Clock::time_point now = kStart;
  for (int stage = 0; stage < 100; ++stage) {  // together the waits would be long
    watch.own_have_ended(now += microseconds(50), now - kStart);
    watch.all_have_ended(microseconds(50), now += microseconds(100), now - kStart);
  }
  EXPECT_FALSE(company.is_near(now));
  watch.own_have_ended(now += microseconds(50), now - kStart);
  watch.all_have_ended(microseconds(50), now += milliseconds(4), now - kStart);
  EXPECT_TRUE(company.is_near(now));
}

TEST(Company, IsBelievedForHalfASecond) {
  Company company;
  EXPECT_FALSE(company.is_near(kStart));
  company.seen(kStart);
  EXPECT_TRUE(company.is_near(kStart));
  EXPECT_TRUE(company.is_near(kStart + milliseconds(499)));
  EXPECT_FALSE(company.is_near(kStart + milliseconds(501)));
}

}  // namespace
}  // namespace lamina::cpu
