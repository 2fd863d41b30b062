#include "passes/partition.h"

#include <algorithm>
#include <unordered_set>

#include "interface/op_schema.h"
#include "interface/status.h"
#include "passes/core/reasons.h"
#include "passes/fusion/group_order.h"

namespace lamina {
namespace {

bool contains(const std::vector<int>& ops, int op) { return std::binary_search(ops.begin(), ops.end(), op); }

// Whether the value is read outside or by an End, or has no reader.
bool is_needed(const Graph& graph, const std::vector<int>& ops, ValueIndex value) {
  const std::vector<Port>& consumers = graph.value(value).consumers;
  return consumers.empty() || std::any_of(consumers.begin(), consumers.end(), [&](const Port& port) {
           return is_marker(graph.op(port.op)) || !contains(ops, port.op);
         });
}

Partition unsupported_op(const Graph& graph, int position, const std::string& why) {
  Partition partition;
  partition.ops = {position};
  partition.supported = false;
  partition.unsupported_reason = describe(graph.op(position)) + ": " + why;
  partition.reasons = {{make_reason(ReasonCode::alone_unsupported, partition.unsupported_reason)}};
  return partition;
}

// Explains what happened to the user's ops that are no longer in the graph.
std::vector<Reason> reasons_of_origins(const Op& op) {
  if (op.origins.empty()) return {};
  std::string names;
  for (const Origin& origin : op.origins) names += join(names.empty() ? "" : ", ", describe(origin), " (op ", origin.id, ")");
  const bool moves_integers =
      std::any_of(op.origins.begin(), op.origins.end(), [](const Origin& origin) { return origin.kind == OpKind::Quantize; });
  if (op.raised_by.empty() && moves_integers)
    return {make_reason(ReasonCode::dropped, join(names, ": no work, ", describe(op), " copies the integers unchanged"))};
  if (op.raised_by.empty()) return {make_reason(ReasonCode::dropped, join(names, ": no work, the result equals the input"))};
  return {make_reason(ReasonCode::raised,
                      join(describe(op), " was found by pattern ", op.raised_by, "; it also replaces ", names))};
}

// Also says which patterns were not searched to the end.
std::vector<Reason> reasons_of_rewrites(const Op& op) {
  std::vector<Reason> reasons = reasons_of_origins(op);
  if (!op.given_up.empty())
    reasons.push_back(make_reason(ReasonCode::not_raised_search_limit,
                                  join(describe(op), " may be the end of a formula of pattern ", op.given_up,
                                       ": it matches in too many ways, and the search reached its limit")));
  return reasons;
}

Partition from_group(FusionGroup& group) {
  Partition partition;
  partition.ops = std::move(group.ops);
  partition.reasons = std::move(group.reasons);
  return partition;
}

}  // namespace

std::vector<ValueIndex> border_inputs(const Graph& graph, const std::vector<int>& ops) {
  std::vector<ValueIndex> inputs;
  std::unordered_set<ValueIndex> seen;
  for (const int op : ops) {
    for (const ValueIndex value : graph.op(op).inputs) {
      if (value == kNoValue || contains(ops, graph.value(value).producer.op)) continue;
      if (seen.insert(value).second) inputs.push_back(value);
    }
  }
  return inputs;
}

std::vector<ValueIndex> border_outputs(const Graph& graph, const std::vector<int>& ops) {
  std::vector<ValueIndex> outputs;
  for (const int op : ops)
    for (const ValueIndex value : graph.op(op).outputs)
      if (value != kNoValue && is_needed(graph, ops, value)) outputs.push_back(value);
  return outputs;
}

std::vector<Partition> make_partitions(const std::shared_ptr<const Graph>& graph, std::vector<FusionGroup> groups,
                                       const std::vector<std::string>& why_not) {
  std::vector<Partition> unordered;
  for (FusionGroup& group : groups) unordered.push_back(from_group(group));
  for (size_t i = 0; i < why_not.size(); ++i)
    if (!why_not[i].empty()) unordered.push_back(unsupported_op(*graph, static_cast<int>(i), why_not[i]));

  std::vector<int> partition_of(graph->ops().size(), -1);
  for (size_t p = 0; p < unordered.size(); ++p)
    for (const int op : unordered[p].ops) partition_of[static_cast<size_t>(op)] = static_cast<int>(p);
  LAMINA_CHECK(std::find(partition_of.begin(), partition_of.end(), -1) == partition_of.end(), "an op is in no partition");

  std::vector<Partition> partitions;
  for (const int p : order_groups(*graph, partition_of, static_cast<int>(unordered.size()))) {
    Partition& partition = partitions.emplace_back(std::move(unordered[static_cast<size_t>(p)]));
    partition.id = partitions.size() - 1;
    partition.graph = graph;
    partition.inputs = border_inputs(*graph, partition.ops);
    partition.outputs = border_outputs(*graph, partition.ops);
    for (size_t i = 0; i < partition.ops.size(); ++i) {
      const auto reasons = reasons_of_rewrites(graph->op(partition.ops[i]));
      partition.reasons[i].insert(partition.reasons[i].begin(), reasons.begin(), reasons.end());
    }
  }
  LAMINA_CHECK(partitions.size() == unordered.size(), "partitions depend on each other in a cycle");
  return partitions;
}

}  // namespace lamina
