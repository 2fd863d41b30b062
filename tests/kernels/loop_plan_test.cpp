// The walks of a kernel over a row, what they compute, and what stays live between them under several policies.
#include "kernels/loop_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "kernels/builder.h"

namespace lamina::kernel {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

// Keeps every function, and loads too if there is space for several nodes.
LoopPolicy keeps(int64_t nodes, bool loads_first) {
  return {.live_size = [](const Node& n, CostClass cost) { return is_load(n) || cost == CostClass::function; },
          .live_space = nodes,
          .keeps_loads_first = loads_first};
}

// dst = exp(x) / sum(exp(x)), rows of 8: %0 load, %1 exp, %2 sum, %3 divide, %4 store.
Kernel softmax() {
  Builder k("softmax", {4, 8}, 1);
  const int x = k.add_arg({.name = "x", .strides = {8, 1}, .table = {}});
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
  const Value e = exp(k.load(x));
  k.store(e / k.reduce(Reduction::sum, e), dst);
  return k.finish();
}

TEST(LoopPlan, EachWalkComputesWhatItsRootsNeed) {
  const Kernel kernel = softmax();
  const LoopPlan plan(kernel);
  EXPECT_EQ(plan.count(), 2);
  EXPECT_THAT(plan.roots(0), ElementsAre(2));
  EXPECT_THAT(plan.nodes(0), ElementsAre(0, 1));
  EXPECT_THAT(plan.roots(1), ElementsAre(4));
  EXPECT_THAT(plan.nodes(1), ElementsAre(0, 1, 3));
  EXPECT_THAT(plan.usual_walks(), ElementsAre(0, 1));
  EXPECT_TRUE(plan.reduces(0));
  EXPECT_FALSE(plan.reduces(1));
}

TEST(LoopPlan, ALiveValueIsReadBackWithoutItsOperands) {
  const Kernel kernel = softmax();
  const LoopPlan plan(kernel, keeps(2, false));
  EXPECT_EQ(plan.live_since(1), 0);
  EXPECT_FALSE(plan.is_read_back(1, 0));
  EXPECT_THAT(plan.nodes(1), ElementsAre(1, 3));
}

TEST(LoopPlan, SpaceGoesToNodesInOrderOrToLoadsFirst) {
  Builder k("two", {4, 8}, 1);
  const int x = k.add_arg({.name = "x", .strides = {8, 1}, .table = {}});
  const int y = k.add_arg({.name = "y", .strides = {8, 1}, .table = {}});
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
  const Value e = exp(k.load(x));
  const Value product = e * k.load(y);
  k.store(product - k.reduce(Reduction::sum, product), dst);
  const Kernel kernel = k.finish();  // %0 load x, %1 exp, %2 load y
  const auto live = [&](const LoopPolicy& policy) {
    const LoopPlan plan(kernel, policy);
    NodeList nodes;
    for (NodeIndex i = 0; i < 3; ++i)
      if (plan.live_since(i) >= 0) nodes.push_back(i);
    return nodes;
  };
  EXPECT_THAT(live({}), IsEmpty());
  EXPECT_THAT(live(keeps(2, false)), ElementsAre(0, 1));
  EXPECT_THAT(live(keeps(2, true)), ElementsAre(0, 2));
  EXPECT_THAT(live(keeps(1, false)), ElementsAre(0));
  LoopPolicy users = keeps(1, false);
  users.keeps_users = true;  // the exponential is the only reader of x
  EXPECT_THAT(live(users), ElementsAre(1));
}

// A dropout's mask: the words are integers, so the first float made of them is what a device can keep.
TEST(LoopPlan, ValuesMadeOfRandomWordsCostAsMuchUpToTheFirstFloat) {
  Builder k("random", {4, 8}, 1);
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
  const Value word = k.map(MapOp::philox_word, k.index({8, 1}), k.constant(1, Type::s64), k.constant(2, Type::s64));
  const Value real = k.cast(word, Type::f32);
  k.store(real * 2.0, dst);
  const Kernel kernel = k.finish();
  std::vector<std::string> costs;
  for (const Node& n : kernel.nodes) costs.push_back(n.kind == NodeKind::map ? name_of(n.op) : "");
  const std::vector<CostClass> classes = cost_classes(kernel);
  for (size_t i = 0; i < costs.size(); ++i) {
    const bool is_random = costs[i] == "philox_word" || costs[i] == "cast";
    EXPECT_EQ(classes[i], is_random ? CostClass::random : CostClass::simple) << costs[i];
  }
}

// dst = LayerNorm(table[ids]): a row of the table is as expensive to load again as any other.
TEST(LoopPlan, ARowThatIsReadByIndexIsReadOnce) {
  Builder k("embedding_norm", {4, 8}, 1);
  const int ids = k.add_arg({.name = "ids", .dtype = DataType::s64, .strides = {1, 0}, .table = {}});
  const int table = k.add_arg({.name = "table", .strides = {0, 1}, .table = {}, .entries = 100, .entry_stride = 8});
  const int dst = k.add_arg({.name = "dst", .output = true, .strides = {8, 1}, .table = {}});
  const Value x = k.load_entry(table, k.load(ids));
  const Builder::Moments moments = k.moments(x);
  k.store(k.center(x, moments, 1.0 / sqrt(moments.variance)), dst);
  const Kernel kernel = k.finish();
  const LoopPlan plan(kernel, keeps(1, true));
  int reads = 0;
  for (int phase = 0; phase < plan.count(); ++phase) {
    for (const NodeIndex i : plan.nodes(phase))
      reads += kernel.node(i).kind == NodeKind::load_entry && !plan.is_read_back(i, phase) ? 1 : 0;
  }
  EXPECT_EQ(plan.count(), 3);
  EXPECT_EQ(reads, 1);
}

TEST(LoopPlan, PrintsAWalkPerLine) {
  const Kernel kernel = softmax();
  EXPECT_EQ(print(LoopPlan(kernel, keeps(2, false))),
            "  walk 0: computes %0 %1 for reduce_sum %2\n"
            "  walk 1: reads back %1; computes %3 for store %4\n"
            "  live: %0 from walk 0, %1 from walk 0\n"
            "  expensive: %1 function, %3 division\n");
}

}  // namespace
}  // namespace lamina::kernel
