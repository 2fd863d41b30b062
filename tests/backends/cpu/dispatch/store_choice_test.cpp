// Stores that calls choose by their times. The choice gets described times, except where the calls of a kernel are counted.
#include "backends/cpu/dispatch/store_choice.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "backends/cpu/dispatch/kernel_dispatch.h"

namespace lamina::testing {
namespace {

using cpu::StoreChoice;

constexpr size_t kTrial = StoreChoice::kSettling + StoreChoice::kCounted;

// Calls of a kernel; `past` and `through` are its nanoseconds with each kind of stores. Returns the number of calls whose
// stores are past the caches.
size_t call(StoreChoice& choice, size_t calls, double past, double through) {
  size_t count = 0;
  for (size_t i = 0; i < calls; ++i) {
    EXPECT_TRUE(choice.begin());
    const bool is_past = choice.next();
    count += is_past ? 1 : 0;
    choice.end(is_past ? past : through);
  }
  return count;
}

constexpr auto kCallsBeforeFirst = static_cast<size_t>(StoreChoice::kBeforeFirst / 1e5);  // of 100 us

TEST(StoreChoice, FirstCallsFollowTheModel) {
  for (const bool past : {true, false}) {
    StoreChoice choice(past);
    EXPECT_EQ(call(choice, kCallsBeforeFirst, 1e5, 1e5), past ? kCallsBeforeFirst : 0);
  }
}

TEST(StoreChoice, TakesTheFasterStores) {
  for (const bool past : {true, false}) {
    StoreChoice choice(past);
    const double first = 1e5, other = 0.9e5;
    call(choice, kCallsBeforeFirst + kTrial, past ? first : other, past ? other : first);
    EXPECT_EQ(choice.past(), !past);
    EXPECT_EQ(call(choice, 100, 1e5, 1e5), past ? 0U : 100U);
  }
}

TEST(StoreChoice, KeepsItsStoresForSmallGains) {
  StoreChoice choice(true);
  call(choice, kCallsBeforeFirst + kTrial, 1e5, 0.97e5);
  EXPECT_TRUE(choice.past());
}

// The first calls of a trial find the caches as the other stores left them.
TEST(StoreChoice, DoesNotCountCallsInWhichCachesSettle) {
  StoreChoice choice(true);
  call(choice, kCallsBeforeFirst, 1e5, 0);
  EXPECT_EQ(call(choice, StoreChoice::kSettling, 0, 1e7), 0U);
  call(choice, StoreChoice::kCounted, 0, 0.5e5);
  EXPECT_FALSE(choice.past());
}

TEST(StoreChoice, FollowsAMachineThatChanges) {
  StoreChoice choice(true);
  call(choice, 2000, 2e5, 1e5);
  EXPECT_FALSE(choice.past());
  call(choice, 3000, 1e5, 2e5);
  EXPECT_TRUE(choice.past());
}

TEST(StoreChoice, TrialsTakeAboutAHundredth) {
  StoreChoice choice(true);
  constexpr size_t kCalls = 100000;
  const size_t tried = kCalls - call(choice, kCalls, 1e5, 1e5);
  EXPECT_GE(tried, kCalls / 105);
  EXPECT_LE(tried, kCalls / 95);
}

TEST(StoreChoice, OverlappingCallsAreNotTimed) {
  StoreChoice choice(true);
  ASSERT_TRUE(choice.begin());
  EXPECT_FALSE(choice.begin());
  const cpu::StoresOfCall other(&choice, false);
  EXPECT_TRUE(other.past());
  choice.end(1e5);
  EXPECT_TRUE(choice.begin());
}

// ---- the calls of a kernel: code that counts its calls and takes some time

size_t calls_past = 0, calls_through = 0;

void take_time() {
  const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(200);
  while (std::chrono::steady_clock::now() < end) {
  }
}
void store_past(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*) { ++calls_past, take_time(); }
void store_through(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*) { ++calls_through, take_time(); }

class CountedCode final : public cpu::KernelCode {
 public:
  Variant variant(bool streams, bool) const override { return {streams ? store_past : store_through, 1}; }
  bool runs_here() const override { return true; }
  void write(cpu::ProgramWriter&) const override {}
};

class StoresOfKernel : public ::testing::Test {
 protected:
  // One row of 16 f32, copied.
  explicit StoresOfKernel(bool times_stores = true) {
    cpu::KernelProgram program;
    program.extents = {1, 16}, program.outer_rank = 1;
    program.streamed = {1}, program.streams = true, program.times_stores = times_stores;
    program.args = {{DataType::f32, false, {16, 1}}, {DataType::f32, true, {16, 1}}};
    program.sharing.rows = 1, program.sharing.row_size = 16;
    dispatch_ = std::make_unique<cpu::KernelDispatch>(std::move(program), std::make_unique<CountedCode>());
    calls_past = calls_through = 0;
  }

  void run(size_t calls, size_t offset) {
    const std::array<void*, 2> args{memory_.data(), memory_.data() + 32 + offset};
    for (size_t i = 0; i < calls; ++i) dispatch_->run(args, nullptr, cpu::Executor(cpu::Executor::Kind::workers, 1));
  }

  alignas(64) std::array<float, 64> memory_ = {};
  std::unique_ptr<cpu::KernelDispatch> dispatch_;
};

TEST_F(StoresOfKernel, AreTriedAfterAWhile) {
  run(1, 0);
  EXPECT_EQ(calls_past, 1U);
  for (int i = 0; i < 5000 && calls_through < kTrial; ++i) run(1, 0);
  EXPECT_GE(calls_through, kTrial);
  EXPECT_GE(calls_past, StoreChoice::kCounted) << "before the trial";
}

TEST_F(StoresOfKernel, StayThroughTheCachesWithinLines) {
  run(200, 1);
  EXPECT_EQ(calls_past, 0U);
  EXPECT_EQ(calls_through, 200U);
}

class StoresThatAreGiven : public StoresOfKernel {
 protected:
  StoresThatAreGiven() : StoresOfKernel(false) {}
};

TEST_F(StoresThatAreGiven, AreNeverTried) {
  run(200, 0);
  EXPECT_EQ(calls_through, 0U);
}

}  // namespace
}  // namespace lamina::testing
