// Accesses to memory that calls choose by their times. The choice gets described times, except where the calls of a kernel are
// counted.
#include "backends/cpu/dispatch/access_choice.h"

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

using cpu::AccessChoice;

constexpr size_t kTrial = AccessChoice::kSettling + AccessChoice::kCounted;

using Times = std::vector<double>;  // nanoseconds of a call, per code

// Calls of a kernel. Returns their number per code.
std::vector<size_t> call(AccessChoice& choice, size_t calls, const Times& times) {
  std::vector<size_t> counts(times.size());
  for (size_t i = 0; i < calls; ++i) {
    EXPECT_TRUE(choice.begin());
    const size_t code = choice.next();
    ++counts.at(code);
    choice.end(times[code]);
  }
  return counts;
}

constexpr auto kCallsBeforeFirst = static_cast<size_t>(AccessChoice::kBeforeFirst / 1e5);  // of 100 us

TEST(AccessChoice, FirstCallsFollowTheModel) {
  AccessChoice choice(2);
  EXPECT_EQ(call(choice, kCallsBeforeFirst, {1e5, 1e5}), (std::vector<size_t>{kCallsBeforeFirst, 0}));
}

TEST(AccessChoice, TakesTheFasterCode) {
  AccessChoice choice(2);
  call(choice, kCallsBeforeFirst + kTrial, {1e5, 0.9e5});
  EXPECT_EQ(choice.present(), 1U);
  EXPECT_EQ(call(choice, 100, {1e5, 1e5}), (std::vector<size_t>{0, 100}));
}

TEST(AccessChoice, KeepsItsCodeForSmallGains) {
  AccessChoice choice(2);
  call(choice, kCallsBeforeFirst + kTrial, {1e5, 0.97e5});
  EXPECT_EQ(choice.present(), 0U);
}

// The first calls of a trial find the caches as the other code left them.
TEST(AccessChoice, DoesNotCountCallsInWhichCachesSettle) {
  AccessChoice choice(2);
  call(choice, kCallsBeforeFirst, {1e5, 0});
  EXPECT_EQ(call(choice, AccessChoice::kSettling, {0, 1e7}), (std::vector<size_t>{0, AccessChoice::kSettling}));
  call(choice, AccessChoice::kCounted, {0, 0.5e5});
  EXPECT_EQ(choice.present(), 1U);
}

TEST(AccessChoice, FollowsAMachineThatChanges) {
  AccessChoice choice(2);
  call(choice, 2000, {2e5, 1e5});
  EXPECT_EQ(choice.present(), 1U);
  call(choice, 3000, {1e5, 2e5});
  EXPECT_EQ(choice.present(), 0U);
}

TEST(AccessChoice, CodesTakeTurnsInTrials) {
  for (const size_t fastest : {size_t{1}, size_t{2}, size_t{3}}) {
    AccessChoice choice(4);
    Times times(4, 1e5);
    times[fastest] = 0.5e5;
    call(choice, 10000, times);
    EXPECT_EQ(choice.present(), fastest);
    const std::vector<size_t> counts = call(choice, 10000, times);
    for (size_t code = 0; code < 4; ++code) EXPECT_GE(counts[code], kTrial) << code;
  }
}

TEST(AccessChoice, TrialsTakeAboutAHundredth) {
  for (const size_t codes : {size_t{2}, size_t{3}}) {
    AccessChoice choice(codes);
    constexpr size_t kCalls = 100000;
    const size_t tried = kCalls - call(choice, kCalls, Times(codes, 1e5))[0];
    EXPECT_GE(tried, kCalls / 105);
    EXPECT_LE(tried, kCalls / 95);
  }
}

TEST(AccessChoice, OverlappingCallsAreNotTimed) {
  AccessChoice choice(2);
  ASSERT_TRUE(choice.begin());
  EXPECT_FALSE(choice.begin());
  const cpu::AccessOfCall other(&choice, 1);
  EXPECT_EQ(other.code(), 0U);
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
void store_past(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*, void*) { ++calls_past, take_time(); }
void store_through(const int64_t*, int64_t, int64_t, int64_t, int64_t, void*, void*) { ++calls_through, take_time(); }

class CountedCode final : public cpu::KernelCode {
 public:
  Variant variant(size_t code, bool) const override { return {code == 0 ? store_past : store_through, 1}; }
  bool runs_here() const override { return true; }
  void write(cpu::ProgramWriter&) const override {}
};

class StoresOfKernel : public ::testing::Test {
 protected:
  // One row of 16 f32, copied.
  explicit StoresOfKernel(size_t timed_codes = 2) {
    cpu::KernelProgram program;
    program.extents = {1, 16}, program.outer_rank = 1;
    program.streamed = {1}, program.streams = {true, false}, program.timed_codes = timed_codes;
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
  EXPECT_GE(calls_past, AccessChoice::kCounted) << "before the trial";
}

TEST_F(StoresOfKernel, StayThroughTheCachesWithinLines) {
  run(200, 1);
  EXPECT_EQ(calls_past, 0U);
  EXPECT_EQ(calls_through, 200U);
}

class StoresThatAreGiven : public StoresOfKernel {
 protected:
  StoresThatAreGiven() : StoresOfKernel(1) {}
};

TEST_F(StoresThatAreGiven, AreNeverTried) {
  run(200, 0);
  EXPECT_EQ(calls_through, 0U);
}

}  // namespace
}  // namespace lamina::testing
