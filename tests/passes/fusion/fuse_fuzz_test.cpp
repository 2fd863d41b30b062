// Properties of all random graphs: every op is in exactly one partition, partitions have an order, and the contracted graph
// agrees with a plain search for cycles.
#include <algorithm>
#include <random>

#include "passes/fusion/contracted_graph.h"
#include "passes/passes_test_support.h"
#include "passes/verify_graph.h"

namespace lamina::testing {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(unsigned seed) : random_(seed) {
    for (int i = 0; i < 3; ++i) values_.push_back(g_.input(f32, {4, 6, 8}));
    for (int i = 0; i < 40; ++i) add_op();
  }
  Graph finish() { return g_.finish(); }

 private:
  int pick(int count) { return std::uniform_int_distribution<int>(0, count - 1)(random_); }
  uint64_t some_value() {  // usually a recent one
    const int size = static_cast<int>(values_.size());
    return values_[static_cast<size_t>(pick(3) == 0 ? pick(size) : size - 1 - pick(std::min(size, 5)))];
  }
  void add_op() {
    const uint64_t x = some_value();
    uint64_t y = kNoTensor;
    switch (pick(9)) {
      case 0: y = layer_norm(g_, x, 8); break;
      case 1: y = g_.op(OpKind::MatMul, {x, g_.input(f32, {8, 8})}); break;
      case 2: y = g_.op(OpKind::SoftMax, {x}, {{"axis", static_cast<int64_t>(pick(3))}}); break;
      case 3: {
        const Attributes attributes{{"axes", std::vector<int64_t>{pick(3)}}, {"keep_dims", true}};
        const auto reduced = g_.op(OpKind::ReduceSum, {x}, attributes);
        y = g_.op(OpKind::Multiply, {some_value(), g_.op(OpKind::Exp, {reduced})});
        break;
      }
      case 4: {
        const auto turned = g_.op(OpKind::StaticTranspose, {x}, {{"order", std::vector<int64_t>{1, 0, 2}}});
        y = g_.op(OpKind::StaticTranspose, {turned}, {{"order", std::vector<int64_t>{1, 0, 2}}});
        break;
      }
      case 5: {
        const auto flat = g_.op(OpKind::StaticReshape, {x}, {{"shape", std::vector<int64_t>{24, 8}}, {"special_zero", false}});
        y = g_.op(OpKind::StaticReshape, {flat}, {{"shape", std::vector<int64_t>{4, 6, 8}}, {"special_zero", false}});
        break;
      }
      case 6: y = g_.op(OpKind::Abs, {x}); break;
      default: y = g_.op(OpKind::Add, {x, some_value()}); break;
    }
    values_.push_back(y);
    if (pick(8) == 0) g_.output(y);
  }

  std::mt19937 random_;
  GraphBuilder g_;
  std::vector<uint64_t> values_;
};

TEST(FuseFuzz, GroupsOfRandomGraphsAreSound) {
  for (unsigned seed = 0; seed < 300; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).finish();
    const auto groups = groups_of(graph);
    expect_sound(graph, groups);
    if (HasFailure()) return;
  }
}

// Every value that leaves a group varies along each of the group's outer dims, or is a sum over those that it lacks.
TEST(FuseFuzz, WhatLeavesAGroupIsMadeOnce) {
  for (unsigned seed = 1000; seed < 1200; ++seed) {
    SCOPED_TRACE(seed);
    const auto partitions = partition_graph(RandomGraph(seed).finish(), PartitionPolicy::fusion, RunsAll{});
    const Graph& graph = *partitions.at(0).graph;
    for (const FusionGroup& group : groups_of(graph)) {
      for (const auto& [port, map] : group.output_maps) {
        const ValueIndex value = graph.ops()[static_cast<size_t>(port.first)].outputs[static_cast<size_t>(port.second)];
        const auto& consumers = graph.value(value).consumers;
        const auto outside = [&](const Port& p) {
          return std::find(group.ops.begin(), group.ops.end(), p.op) == group.ops.end();
        };
        if (!consumers.empty() && std::none_of(consumers.begin(), consumers.end(), outside)) continue;
        const auto columns = group.column_outputs.find(port.first);
        if (columns != group.column_outputs.end() && columns->second[static_cast<size_t>(port.second)]) continue;
        std::vector<bool> covered = group.inner;
        for (const AxisRun& run : map)
          for (int dim = run.first; dim < run.first + run.count; ++dim) covered[static_cast<size_t>(dim)] = true;
        for (size_t dim = 0; dim < covered.size(); ++dim) {
          EXPECT_TRUE(covered[dim] || group.extents[dim] == 1);
        }
      }
    }
    if (HasFailure()) return;
  }
}

// ---- the contracted graph compared with a plain search

class PlainContraction {
 public:
  explicit PlainContraction(const Graph& graph) : graph_(graph) {
    for (size_t i = 0; i < graph.ops().size(); ++i) node_.push_back(static_cast<int>(i));
  }
  bool merge(int a, int b) {
    std::vector<int> tried = node_;
    for (int& node : tried)
      if (node == node_[static_cast<size_t>(b)]) node = node_[static_cast<size_t>(a)];
    std::vector<int> dense(tried.size(), -1);
    int count = 0;
    for (int& node : tried) {
      if (dense[static_cast<size_t>(node)] < 0) dense[static_cast<size_t>(node)] = count++;
      node = dense[static_cast<size_t>(node)];
    }
    if (order_groups(graph_, tried, count).size() != static_cast<size_t>(count)) return false;
    node_ = tried;
    return true;
  }

 private:
  const Graph& graph_;
  std::vector<int> node_;
};

TEST(ContractedGraphFuzz, RefusesExactlyTheMergesThatMakeACycle) {
  std::mt19937 random(7);
  for (unsigned seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    const Graph graph = RandomGraph(seed).finish();
    ContractedGraph contracted(graph);
    PlainContraction plain(graph);
    std::uniform_int_distribution<int> any(0, static_cast<int>(graph.ops().size()) - 1);
    for (int i = 0; i < 120; ++i) {
      const int a = any(random), b = any(random);
      const bool merged = contracted.merge(a, b) == ContractedGraph::Verdict::merged;
      ASSERT_EQ(merged, plain.merge(a, b));
    }
  }
}

}  // namespace
}  // namespace lamina::testing
