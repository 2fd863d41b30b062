// Which operations run in which walk over a row, and which values are live between walks.
#include "backends/cpu/emit/phases.h"

#include <gtest/gtest.h>

#include "backends/cpu/support/kernels_of_rows.h"

namespace lamina::testing {
namespace {

using kernel::Kernel;
using kernel::Node;
using kernel::NodeIndex;
using kernel::NodeKind;
using kernel::Reduction;
using kernel::Value;

// The phases of a kernel under a schedule; no code is emitted.
class PhasesOf {
 public:
  explicit PhasesOf(Kernel kernel, cpu::Schedule schedule = {})
      : kernel_(std::move(kernel)),
        schedule_(std::move(schedule)),
        module_("module", context_),
        emission_(module_, "function", kernel_, schedule_, {}),
        phases_(emission_) {}
  const cpu::Phases* operator->() const { return &phases_; }

  NodeIndex first(NodeKind kind) const {
    for (size_t i = 0; i < kernel_.nodes.size(); ++i) {
      if (kernel_.nodes[i].kind == kind) return static_cast<NodeIndex>(i);
    }
    return -1;
  }
  std::vector<NodeKind> kinds_of_roots(int phase) const {
    std::vector<NodeKind> kinds;
    for (const NodeIndex root : phases_.roots_of(phase)) kinds.push_back(kernel_.node(root).kind);
    return kinds;
  }

 private:
  Kernel kernel_;
  cpu::Schedule schedule_;
  llvm::LLVMContext context_;
  llvm::Module module_;
  cpu::Emission emission_;
  cpu::Phases phases_;
};

// Mean and variance need one walk, rows with a large offset a second one; the last walk stores the output.
TEST(Phases, ASecondWalkForMeanAndVarianceIsNotUsual) {
  const PhasesOf phases(layer_norm({8, 768}));
  EXPECT_EQ(phases.kinds_of_roots(0), std::vector{NodeKind::moments});
  EXPECT_EQ(phases.kinds_of_roots(1), std::vector{NodeKind::moments});
  EXPECT_TRUE(phases->may_be_skipped(1));
  EXPECT_EQ(phases.kinds_of_roots(phases->last()), std::vector{NodeKind::store});
  EXPECT_EQ(phases->usual_walks(), (std::vector{0, phases->last()}));
}

TEST(Phases, LongRowsTakeTheirSecondWalkBlockByBlock) {
  const PhasesOf phases(layer_norm({8, 2 * cpu::kBlock}));
  EXPECT_TRUE(phases->moments_by_block());
  EXPECT_TRUE(phases->roots_of(1).empty());
  EXPECT_FALSE(phases->may_be_skipped(1));
}

// Conversions are expensive, so their results stay live; loads of f32 are cheap. Threads that share a row share no live values.
TEST(Phases, WhatIsExpensiveAndNeededTwiceIsKept) {
  const PhasesOf halves(layer_norm({8, 768, DataType::bf16}));
  const NodeIndex load = halves.first(NodeKind::load);
  EXPECT_EQ(halves->live_since(load), 0);
  EXPECT_FALSE(halves->is_read_back(load, 0));
  EXPECT_TRUE(halves->is_read_back(load, halves->last()));

  const PhasesOf floats(layer_norm({8, 768}));
  EXPECT_EQ(floats->live_since(floats.first(NodeKind::load)), -1);

  cpu::Schedule split;
  split.split = true;
  const PhasesOf shared(layer_norm({8, 768, DataType::bf16}), split);
  EXPECT_EQ(shared->live_since(shared.first(NodeKind::load)), -1);
}

// doubled = 2 src, dst = doubled - sum(doubled): the first store needs no sum and can run early. A streamed store waits for the
// last walk, which has the value anyway and iterates by cache lines.
TEST(Phases, AStreamedStoreRunsInTheLastWalk) {
  const auto kernel = [] {
    Rows k("doubled", {8, 768});
    const Value doubled = k.src("src") * 2.0;
    k.out(doubled, "doubled");
    k.out(doubled - k.builder().reduce(Reduction::sum, doubled), "dst");
    return k.finish();
  };
  const PhasesOf temporal(kernel());
  const NodeIndex store = temporal.first(NodeKind::store);
  EXPECT_EQ(temporal->loop_of(store), 0);

  cpu::Schedule schedule;
  schedule.streamed = {1, 2};
  const PhasesOf streamed(kernel(), schedule);
  EXPECT_EQ(streamed->loop_of(store), streamed->last());
}

}  // namespace
}  // namespace lamina::testing
