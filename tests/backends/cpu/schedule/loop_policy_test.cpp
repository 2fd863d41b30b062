// What the CPU keeps between the walks over a row, and in which walk its stores run.
#include "backends/cpu/schedule/loop_policy.h"

#include <gtest/gtest.h>

#include "backends/cpu/support/kernels_of_rows.h"
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
      : kernel_(std::move(kernel)), plan_(kernel_, cpu::loop_policy(kernel_, schedule)) {}
  const kernel::LoopPlan* operator->() const { return &plan_; }

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
  kernel::LoopPlan plan_;
};

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
