// Utilities of the pass tests: groups as text, and checks that hold for every grouping.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "interface/op_schema.h"
#include "passes/fusion/fuse.h"
#include "passes/fusion/group_order.h"
#include "passes/pipeline.h"
#include "support/graph_builder.h"

namespace lamina::testing {

using enum DataType;

inline std::vector<bool> all_runnable(const Graph& graph) { return std::vector<bool>(graph.ops().size(), true); }

inline std::vector<FusionGroup> groups_of(const Graph& graph) { return fuse(graph, all_runnable(graph), true); }

// "residual norm | matmul": op names, groups in order.
inline std::string picture(const Graph& graph, const std::vector<std::vector<int>>& groups) {
  std::string text;
  for (const std::vector<int>& ops : groups) {
    if (!text.empty()) text += " |";
    for (const int op : ops) text += (text.empty() ? "" : " ") + graph.ops()[static_cast<size_t>(op)].name;
  }
  return text;
}
inline std::string picture(const Graph& graph, const std::vector<FusionGroup>& groups) {
  std::vector<std::vector<int>> ops;
  for (const FusionGroup& group : groups) ops.push_back(group.ops);
  return picture(graph, ops);
}
inline std::string picture(const Graph& graph) { return picture(graph, groups_of(graph)); }

inline std::string picture(const std::vector<Partition>& partitions) {
  std::vector<std::vector<int>> ops;
  for (const Partition& partition : partitions) ops.push_back(partition.ops);
  return partitions.empty() ? "" : picture(*partitions.front().graph, ops);
}

// Returns the codes of all reasons recorded for the op of this name.
inline std::vector<std::string> codes_of(const Graph& graph, const std::vector<FusionGroup>& groups, const std::string& name) {
  std::vector<std::string> codes;
  for (const FusionGroup& group : groups)
    for (size_t i = 0; i < group.ops.size(); ++i)
      if (group.ops[i] == find_op(graph, name))
        for (const Reason& reason : group.reasons[i]) codes.push_back(reason.code);
  return codes;
}
inline std::vector<std::string> codes_of(const Graph& graph, const std::string& name) {
  return codes_of(graph, groups_of(graph), name);
}

// Invariants of every grouping: each op occurs once, groups have an order, and inner values are written and read through one
// map.
inline void expect_sound(const Graph& graph, const std::vector<FusionGroup>& groups) {
  std::vector<int> group_of(graph.ops().size(), -1);
  for (size_t g = 0; g < groups.size(); ++g) {
    ASSERT_EQ(groups[g].reasons.size(), groups[g].ops.size());
    for (const int op : groups[g].ops) {
      EXPECT_EQ(group_of[static_cast<size_t>(op)], -1);
      group_of[static_cast<size_t>(op)] = static_cast<int>(g);
    }
  }
  EXPECT_THAT(group_of, ::testing::Each(::testing::Ge(0)));
  for (size_t op = 0; op < graph.ops().size(); ++op) {
    for (const ValueIndex value : graph.ops()[op].inputs) {
      const int producer = value == kNoValue ? -1 : graph.value(value).producer.op;
      if (producer >= 0) {
        EXPECT_LE(group_of[static_cast<size_t>(producer)], group_of[op]) << "groups out of order";
      }
    }
  }
  for (const FusionGroup& group : groups) {
    for (const auto& [port, map] : group.input_maps) {
      const ValueIndex value = graph.ops()[static_cast<size_t>(port.first)].inputs[static_cast<size_t>(port.second)];
      const Port producer = graph.value(value).producer;
      const auto written = group.output_maps.find({producer.op, producer.port});
      if (written != group.output_maps.end()) {
        EXPECT_EQ(written->second, map) << describe(graph.ops()[static_cast<size_t>(port.first)]);
      }
      if (graph.tensor(value).shape && !group.opaque_copy) {
        EXPECT_EQ(map.size(), graph.tensor(value).shape->size());
      }
    }
  }
}

struct RunsAll : Capabilities {
  std::string why_unsupported(const Graph&, const Op&) const override { return ""; }
};
struct RefusesKind : Capabilities {
  explicit RefusesKind(OpKind refused) : kind(refused) {}
  std::string why_unsupported(const Graph&, const Op& op) const override { return op.kind == kind ? "no kernel for it" : ""; }
  OpKind kind;
};

// y = LayerNorm(x) over the last axis, with gamma and beta, without statistics.
inline uint64_t layer_norm(GraphBuilder& g, uint64_t x, int64_t size, int64_t axis = -1) {
  return g.op(OpKind::LayerNorm, {x, g.input(f32, {size}), g.input(f32, {size})},
              {{"begin_norm_axis", axis}, {"keep_stats", false}});
}

// The groups of a graph as a picture, after a check of them.
inline std::string fused(const Graph& graph) {
  const std::vector<FusionGroup> groups = groups_of(graph);
  expect_sound(graph, groups);
  return picture(graph, groups);
}

}  // namespace lamina::testing
