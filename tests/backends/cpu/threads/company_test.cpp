// When regions of OpenMP say that others want the cores, and for how long that is believed.
#include "backends/cpu/threads/company.h"

#include <gtest/gtest.h>

namespace lamina::cpu {
namespace {

using Clock = Company::Clock;
using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Clock::time_point kStart{std::chrono::hours(1)};

// A region whose caller has so many units of so long each, and waits so long for others. It spends its time on the CPU, less
// what others take of its core.
bool is_seen_after(int64_t units, microseconds a_unit, microseconds waits, microseconds taken_off = {}) {
  Company company;
  RegionWatch watch(company, kStart, {});
  const auto own_end = kStart + units * a_unit;
  watch.own_have_ended(units, own_end, units * a_unit - taken_off);
  watch.all_have_ended(own_end + waits, units * a_unit + waits - taken_off);
  return company.is_near(own_end + waits);
}

TEST(Company, IsThereWhereOthersEndMuchLaterThanTheCaller) {
  EXPECT_TRUE(is_seen_after(10, microseconds(10), milliseconds(4)));
  EXPECT_FALSE(is_seen_after(10, microseconds(10), microseconds(400)));  // a thread that slept is woken
  EXPECT_FALSE(is_seen_after(10, microseconds(10), microseconds(0)));
}

// 4 ms of time slices for others: the caller's units look long, and no thread is later than another.
TEST(Company, IsThereWhereAllThreadsAreLate) {
  EXPECT_TRUE(is_seen_after(1, milliseconds(5), microseconds(0), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(2, milliseconds(4), milliseconds(4), milliseconds(7)));
  EXPECT_FALSE(is_seen_after(1, milliseconds(5), microseconds(0), microseconds(100)));
}

TEST(Company, IsNotThereWhereUnitsAreLong) {
  EXPECT_FALSE(is_seen_after(1, milliseconds(2), milliseconds(4)));
  EXPECT_TRUE(is_seen_after(1, milliseconds(2), milliseconds(12)));
}

TEST(Company, IsNotTakenFromACallerThatHadNoUnits) { EXPECT_FALSE(is_seen_after(0, microseconds(10), milliseconds(20))); }

TEST(Company, IsSeenInEachStageAlone) {
  Company company;
  RegionWatch watch(company, kStart, {});
  Clock::time_point now = kStart;
  for (int stage = 0; stage < 100; ++stage) {  // together the waits would be long
    watch.own_have_ended(5, now += microseconds(50), now - kStart);
    watch.all_have_ended(now += microseconds(100), now - kStart);
  }
  EXPECT_FALSE(company.is_near(now));
  watch.own_have_ended(5, now += microseconds(50), now - kStart);
  watch.all_have_ended(now += milliseconds(4), now - kStart);
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
