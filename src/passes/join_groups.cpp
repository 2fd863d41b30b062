#include "passes/join_groups.h"

#include <algorithm>
#include <numeric>

#include "interface/op_schema.h"
#include "passes/core/reasons.h"
#include "passes/fusion/group_order.h"

namespace lamina {

namespace {

// Ops that do not run separate partitions. The level of a group is the largest number of such ops on a path to it. Groups of
// one level can be joined, because no such op is on a path between them.
class Levels {
 public:
  Levels(const Graph& graph, const std::vector<FusionGroup>& groups)
      : graph_(graph), group_of_(graph.ops().size(), -1), runs_(groups.size(), true) {
    for (size_t g = 0; g < groups.size(); ++g) {
      for (const int op : groups[g].ops) group_of_[static_cast<size_t>(op)] = static_cast<int>(g);
    }
    for (int& group : group_of_) {
      if (group >= 0) continue;
      group = static_cast<int>(runs_.size());
      runs_.push_back(false);
    }
    levels_.assign(runs_.size(), 0);
    std::vector<std::vector<int>> ops_of(runs_.size());
    for (size_t op = 0; op < group_of_.size(); ++op) ops_of[static_cast<size_t>(group_of_[op])].push_back(static_cast<int>(op));
    for (const int group : order_groups(graph, group_of_, static_cast<int>(runs_.size()))) {
      for (const int op : ops_of[static_cast<size_t>(group)]) raise_readers(op);
    }
  }

  int group_of(int op) const { return group_of_[static_cast<size_t>(op)]; }
  bool are_joined(int a, int b) const {
    return runs_[static_cast<size_t>(a)] && runs_[static_cast<size_t>(b)] &&
           levels_[static_cast<size_t>(a)] == levels_[static_cast<size_t>(b)];
  }

 private:
  void raise_readers(int op) {
    const auto from = static_cast<size_t>(group_of(op));
    for (const ValueIndex value : graph_.op(op).outputs) {
      if (value == kNoValue) continue;
      for (const Port& reader : graph_.value(value).consumers) {
        const auto to = static_cast<size_t>(group_of(reader.op));
        if (to != from) levels_[to] = std::max(levels_[to], levels_[from] + (runs_[from] ? 0 : 1));
      }
    }
  }

  const Graph& graph_;
  std::vector<int> group_of_;  // per op; an op that does not run counts as a separate group
  std::vector<bool> runs_;     // per group
  std::vector<int> levels_;
};

int root_of(std::vector<int>& parents, int group) {
  while (parents[static_cast<size_t>(group)] != group) {
    int& parent = parents[static_cast<size_t>(group)];
    parent = parents[static_cast<size_t>(parent)];
    group = parent;
  }
  return group;
}

// Per group, a representative of all groups that it is joined with.
std::vector<int> components(const Graph& graph, const std::vector<FusionGroup>& groups) {
  const Levels levels(graph, groups);
  std::vector<int> parents(groups.size());
  std::iota(parents.begin(), parents.end(), 0);
  for (const Value& value : graph.values()) {
    if (value.producer.op < 0) continue;
    const int from = levels.group_of(value.producer.op);
    for (const Port& reader : value.consumers) {
      const int to = levels.group_of(reader.op);
      if (levels.are_joined(from, to)) parents[static_cast<size_t>(root_of(parents, to))] = root_of(parents, from);
    }
  }
  for (size_t g = 0; g < parents.size(); ++g) parents[g] = root_of(parents, static_cast<int>(g));
  return parents;
}

bool has_library_op(const Graph& graph, const FusionGroup& group) {
  return std::any_of(group.ops.begin(), group.ops.end(),
                     [&](int op) { return schema_of(graph.op(op).kind).op_class == OpClass::library; });
}

// The ops in the order of the graph, each with its reasons.
FusionGroup joined(const Graph& graph, const std::vector<FusionGroup*>& parts) {
  std::vector<std::pair<int, std::vector<Reason>>> ops;
  for (FusionGroup* part : parts) {
    for (size_t i = 0; i < part->ops.size(); ++i) ops.emplace_back(part->ops[i], std::move(part->reasons[i]));
  }
  std::sort(ops.begin(), ops.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  FusionGroup whole;
  for (auto& [op, reasons] : ops) {
    if (!is_marker(graph.op(op)))
      reasons.push_back(
          make_reason(ReasonCode::joined, join(describe(graph.op(op)), " is a step of a partition of ", parts.size(),
                                               " steps, which exchange values in memory that lamina allocates")));
    whole.ops.push_back(op);
    whole.reasons.push_back(std::move(reasons));
  }
  return whole;
}

}  // namespace

std::vector<FusionGroup> join_around_library_ops(const Graph& graph, std::vector<FusionGroup> groups) {
  const std::vector<int> component = components(graph, groups);
  std::vector<std::vector<FusionGroup*>> parts(groups.size());
  std::vector<bool> holds_library_op(groups.size(), false);
  for (size_t g = 0; g < groups.size(); ++g) {
    parts[static_cast<size_t>(component[g])].push_back(&groups[g]);
    if (has_library_op(graph, groups[g])) holds_library_op[static_cast<size_t>(component[g])] = true;
  }
  std::vector<FusionGroup> result;
  for (size_t c = 0; c < parts.size(); ++c) {
    if (holds_library_op[c] && parts[c].size() > 1) {
      result.push_back(joined(graph, parts[c]));
    } else {
      for (FusionGroup* part : parts[c]) result.push_back(std::move(*part));
    }
  }
  return result;
}

}  // namespace lamina
