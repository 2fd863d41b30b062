// What the CPU keeps between the walks over a row, and in which walk its stores run.
#include "backends/cpu/schedule/loop_policy.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "backends/cpu/schedule/live_values.h"
#include "backends/cpu/schedule/tuning.h"
#include "backends/cpu/support/scheduled_kernels.h"
#include "kernels/numerics.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Reduction;
using kernel::Value;

// The loop plan of a kernel under a schedule.
class PlanOf {
 public:
  explicit PlanOf(Kernel kernel, const cpu::Schedule& schedule = {})
      : kernel_(std::move(kernel)), schedule_(schedule), plan_(kernel_, cpu::loop_policy(kernel_, schedule_)) {}
  const kernel::LoopPlan* operator->() const { return &plan_; }
  cpu::LiveValues live() const { return cpu::live_values(plan_, schedule_); }

  NodeIndex first(NodeKind kind) const {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      if (kernel_.nodes[i].kind == kind) return static_cast<NodeIndex>(i);
    }
    return -1;
  }
  std::vector<NodeKind> kinds_of_roots(int phase) const {
    std::vector<NodeKind> kinds;
    for (const NodeIndex root : plan_.roots(phase)) kinds.push_back(kernel_.node(root).kind);
    return kinds;
  }

 private:
  Kernel kernel_;
  cpu::Schedule schedule_;
  kernel::LoopPlan plan_;
};

int values_in(const cpu::LiveValues& live) {
  return static_cast<int>(std::count_if(live.places.begin(), live.places.end(), [](int64_t place) { return place >= 0; }));
}

cpu::Schedule tile_of(int rows) {
  cpu::Schedule schedule;
  schedule.rows_per_tile = rows;
  return schedule;
}

// Mean and variance need one walk, rows with a large offset a second one; the last walk stores the output.
TEST(LoopPolicy, ASecondWalkForMeanAndVarianceIsNotUsual) {
  const PlanOf plan(layer_norm({8, 768}));
  EXPECT_EQ(plan.kinds_of_roots(0), std::vector{NodeKind::moments});
  EXPECT_EQ(plan.kinds_of_roots(1), std::vector{NodeKind::moments});
  EXPECT_TRUE(plan->may_be_skipped(1));
  EXPECT_EQ(plan.kinds_of_roots(plan->last()), std::vector{NodeKind::store});
  EXPECT_EQ(plan->usual_walks(), (std::vector{0, plan->last()}));
}

TEST(LoopPolicy, LongRowsTakeTheirSecondWalkBlockByBlock) {
  const PlanOf plan(layer_norm({8, 2 * numerics::kBlock}));
  EXPECT_TRUE(plan->moments_by_block());
  EXPECT_TRUE(plan->roots(1).empty());
  EXPECT_FALSE(plan->may_be_skipped(1));
}

// Conversions are expensive, so their results stay live; loads of f32 are cheap. Threads that share a row share no live values.
TEST(LoopPolicy, WhatIsExpensiveAndNeededTwiceIsKept) {
  const PlanOf halves(layer_norm({8, 768, DataType::bf16}));
  const NodeIndex load = halves.first(NodeKind::load);
  EXPECT_EQ(halves->live_since(load), 0);
  EXPECT_FALSE(halves->is_read_back(load, 0));
  EXPECT_TRUE(halves->is_read_back(load, halves->last()));

  const PlanOf floats(layer_norm({8, 768}));
  EXPECT_EQ(floats->live_since(floats.first(NodeKind::load)), -1);

  cpu::Schedule split;
  split.split = true;
  const PlanOf shared(layer_norm({8, 768, DataType::bf16}), split);
  EXPECT_EQ(shared->live_since(shared.first(NodeKind::load)), -1);
}

// Rows of bf16 that are longer than the limit of conversions convert their elements again, but keep their exponentials, up to a
// larger limit.
TEST(LoopPolicy, ValuesOfFunctionsAreWorthMoreMemory) {
  EXPECT_EQ(values_in(PlanOf(layer_norm({8, 16384, DataType::bf16})).live()), 0);
  const PlanOf long_rows(softmax({8, 16384, DataType::bf16}));
  EXPECT_EQ(values_in(long_rows.live()), 1);
  EXPECT_EQ(long_rows->live_since(long_rows.first(NodeKind::load)), -1);
  EXPECT_GE(long_rows.live().bytes, 16384 * 4);
  EXPECT_EQ(values_in(PlanOf(softmax({8, 300'000})).live()), 0);
}

TEST(LoopPolicy, RowsOfATileShareTheMemoryOfLiveValues) {
  constexpr int64_t size = cpu::tuning::kLiveBytesOfFunctions / 4 / 4;  // four rows of f32
  EXPECT_EQ(values_in(PlanOf(softmax({8, size}), tile_of(4)).live()), 1);
  EXPECT_EQ(values_in(PlanOf(softmax({8, size + 64}), tile_of(4)).live()), 0);
}

TEST(LoopPolicy, FewLiveValuesAreOnTheStack) {
  const cpu::LiveValues few = PlanOf(softmax({8, 1024})).live(), many = PlanOf(softmax({8, 8192})).live();
  EXPECT_GT(few.bytes, 0);
  EXPECT_EQ(few.scratch_bytes(), 0);
  EXPECT_GT(many.bytes, cpu::tuning::kLiveBytesOnStack);
  EXPECT_EQ(many.scratch_bytes(), many.bytes);
}

// Nodes have separate memory, in lines.
TEST(LoopPolicy, PlacesOfLiveValuesDoNotOverlap) {
  Rows k("two_functions", {8, 100});
  const Value x = k.src("src"), power = exp(x), curve = exp(x * 0.5);
  const Value sum = k.builder().reduce(Reduction::sum, power + curve);
  k.out(power / sum + curve * sum, "dst");
  const PlanOf plan(k.finish(), tile_of(2));
  const cpu::LiveValues live = plan.live();
  ASSERT_EQ(values_in(live), 2);
  std::vector<int64_t> places;
  for (const int64_t place : live.places)
    if (place >= 0) places.push_back(place);
  EXPECT_EQ(places[0], 0);
  EXPECT_GE(places[1], 2 * 128 * 4);  // rows of 100 are two chunks
  EXPECT_GE(live.bytes, places[1] + 2 * 128 * 4);
  EXPECT_EQ(places[1] % cpu::kLiveAlignment, 0);
  EXPECT_EQ(live.bytes % cpu::kLiveAlignment, 0);
}

// doubled = 2 src, dst = doubled - sum(doubled): the first store needs no sum and can run early. A streamed store waits for the
// last walk, which has the value anyway and iterates by cache lines.
TEST(LoopPolicy, AStreamedStoreRunsInTheLastWalk) {
  const auto kernel = [] {
    Rows k("doubled", {8, 768});
    const Value doubled = k.src("src") * 2.0;
    k.out(doubled, "doubled");
    k.out(doubled - k.builder().reduce(Reduction::sum, doubled), "dst");
    return k.finish();
  };
  const PlanOf temporal(kernel());
  const NodeIndex store = temporal.first(NodeKind::store);
  EXPECT_EQ(temporal->loop_of(store), 0);

  cpu::Schedule schedule;
  schedule.streamed = {1, 2};
  const PlanOf streamed(kernel(), schedule);
  EXPECT_EQ(streamed->loop_of(store), streamed->last());
}

}  // namespace
}  // namespace lamina::testing
